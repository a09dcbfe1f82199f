// L1-regularised logistic regression over the columns of a small sparse problem:
//   sum_j |w_j| + sum_i cost_i log(1 + exp(-side_i x_i.w))
//
// Newton steps whose quadratic models are minimised by coordinate descent (Yuan, Ho and Lin 2012,
// "An improved GLMNET for L1-regularized logistic regression"), with a line search: no step raises the
// objective.
#pragma once

#include <cstdint>
#include <vector>

namespace metarank {

struct L1LogisticProblem {
  std::int64_t n_rows = 0;
  std::vector<std::int64_t> start;  // of a column; one entry more than columns
  struct Entry {
    std::int32_t row;
    float value;
  };
  std::vector<Entry> entry;
  const float* side;  // +1 or -1 (n_rows)
  const float* cost;  // >= 0 (n_rows)

  std::int64_t n_columns() const { return static_cast<std::int64_t>(start.size()) - 1; }
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

  static double loss(std::int64_t n_rows, const float* side, const float* cost, const std::vector<double>& margin);

 private:
  struct RowState {
    float curvature, step;
  };

  void derive(const L1LogisticProblem& problem, const std::vector<double>& margin);
  double descend(const L1LogisticProblem& problem, const Options& options, const std::vector<double>& w);

  std::vector<RowState> state_;      // curvature of a row's loss, and x.d of the step d so far
  std::vector<float> slope_;         // derivative of a row's loss
  std::vector<double> gradient_, hessian_, target_, trial_;
  std::vector<std::int32_t> active_;
};

}  // namespace metarank
