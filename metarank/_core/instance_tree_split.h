// How a node of an instance tree parts its points (Jain et al. 2016, eq. 4; Prabhu and Varma 2014):
//   min |w|_1 + C_log sum_i c_i log(1 + exp(-side_i w.x_i)) - C_rank sum_i c_i nDCG(ranking of side_i, y_i)
// over a sparse hyperplane w (its bias a weight like the others), a side of every point, and a ranking of
// all labels for each side; c_i is the weight of a point. Each block is minimised in turn, given the others.
// Balanced, the log loss of both sides weighs the same, or small nodes would learn a bias and nothing else.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse_rows.h"

namespace metarank {

// L1-regularised logistic regression over the columns of a small sparse problem:
//   sum_j |w_j| + sum_i cost_i log(1 + exp(-side_i x_i.w))
//
// Newton steps whose quadratic models are minimised by coordinate descent (Yuan, Ho and Lin 2012,
// "An improved GLMNET for L1-regularized logistic regression"), with a line search: no step raises the
// objective.
struct L1LogisticProblem {
  int64_t n_rows = 0;
  std::vector<int64_t> start;  // of a column; one entry more than columns
  struct Entry {
    int32_t row;
    float value;
  };
  std::vector<Entry> entry;
  const float* side;  // +1 or -1 (n_rows)
  const float* cost;  // >= 0 (n_rows)

  int64_t n_columns() const { return static_cast<int64_t>(start.size()) - 1; }
};

class L1Logistic {
 public:
  struct Options {
    double tolerance;  // stop where the violation of optimality is this share of that of w = 0
    int max_steps;     // Newton steps
    int max_passes;    // of coordinate descent in a step
  };

  // Moves w, in place, towards the minimum; `margin` is x.w for each row before and after.
  void minimise(const L1LogisticProblem& problem, const Options& options, std::vector<double>& w,
                std::vector<double>& margin);

  static double loss(int64_t n_rows, const float* side, const float* cost, const std::vector<double>& margin);

 private:
  struct RowState {
    float curvature, step;
  };

  void derive(const L1LogisticProblem& problem, const std::vector<double>& margin);
  double descend(const L1LogisticProblem& problem, const Options& options, const std::vector<double>& w);

  std::vector<RowState> state_;      // curvature of a row's loss, and x.d of the step d so far
  std::vector<float> slope_;         // derivative of a row's loss
  std::vector<double> gradient_, hessian_, target_, trial_;
  std::vector<int32_t> active_;
};

// What a forest is grown from: rows of X and of relevances >= 0, and a weight > 0 of each row.
struct RankedRows {
  SparseRows X, Y;
  const float* weight;
  int64_t n_rows, n_features, n_labels;
};

struct SplitOptions {
  double log_cost, rank_cost;
  bool balanced;           // the log loss of a point counts one over the share of the points on its side
  int rounds;              // of sides and rankings, then the hyperplane
  bool ideal_normaliser;   // a point's DCG over its own best (Prabhu and Varma 2014), not over a constant
  L1Logistic::Options logistic;
};

// w.x + bias, in the order of the features. `dense` holds w, 0 elsewhere.
inline float margin_of(float bias, const float* dense, const int32_t* feature, const float* value, int64_t n) {
  float sum = bias;
  for (int64_t p = 0; p < n; ++p) sum += dense[feature[p]] * value[p];
  return sum;
}

// One worker's scratch, and the split it learned last.
class InstanceSplit {
 public:
  InstanceSplit(const RankedRows& data, const SplitOptions& options);

  // False if all rows are on one side.
  bool learn(const int32_t* rows, int64_t n, uint64_t seed);

  // The hyperplane: features ascending. right[i]: row i of those given has a positive margin.
  const std::vector<int32_t>& features() const { return features_; }
  const std::vector<float>& weights() const { return weights_; }
  float bias() const { return bias_; }
  const std::vector<uint8_t>& right() const { return right_; }

 private:
  // A feature in the rows at hand.
  struct Feature {
    int32_t count = 0, column = -1;
    float pull[2] = {0.0f, 0.0f};  // sums of cost * |value| by the side it speaks for
  };

  void gather_labels(const int32_t* rows, int64_t n);
  void rank(int64_t n);
  bool choose_sides(int64_t n);
  void weigh(const int32_t* rows, int64_t n);
  void fit_hyperplane(const int32_t* rows, int64_t n);
  void assign(const int32_t* rows, int64_t n);

  const RankedRows& data_;
  SplitOptions options_;
  std::vector<double> discount_;         // of a rank, best first
  double normaliser_;                    // the sum of all discounts

  std::vector<int32_t> local_;      // of a label in these rows, or -1
  std::vector<int32_t> labels_;     // the labels in these rows
  std::vector<int64_t> y_start_;    // relevances by row, of local labels
  std::vector<int32_t> y_label_;
  std::vector<double> y_gain_;
  std::vector<double> score_[2];         // of a local label on either side
  std::vector<double> label_discount_[2];
  std::vector<uint64_t> order_, spare_;

  std::vector<float> side_, cost_;
  std::vector<Feature> feature_;         // of all features; those not in touched_ are as new
  std::vector<int32_t> touched_, kept_;
  std::vector<int64_t> next_;       // place of a column's next value
  L1LogisticProblem problem_;
  L1Logistic solver_;
  std::vector<double> w_, margin_;       // of the columns of the problem; of the rows

  std::vector<float> dense_;             // the hyperplane over all features, for margin_of
  std::vector<int32_t> features_;
  std::vector<float> weights_;
  float bias_ = 0.0f;
  std::vector<uint8_t> right_;
};

}  // namespace metarank
