#include "linear_scores.h"

#include <algorithm>

#include "sparse_rows.h"
#include "parallel.h"
#include "simd.h"

namespace metarank {

namespace {

// Rows a partial sum covers: part of the definition of the sum, not of the schedule.
constexpr int64_t kRowBlock = 2048;

// sum_j (x_j - mean_j) w_j in one fixed order.
METARANK_INLINE double centred_dot(const float* x, const double* mean, const double* w, int64_t d) {
  return sum_in_lanes<double>(d, [=](int64_t j) METARANK_LAMBDA_INLINE { return (x[j] - mean[j]) * w[j]; });
}

// Of each row by the weights of its label, or by those of the only one.
METARANK_KERNEL void score_rows(const float* x, const int32_t* label, const double* mean, const double* weights,
                                const double* bias, int64_t d, int64_t begin, int64_t end, double* out) {
  for (int64_t i = begin; i < end; ++i) {
    const int64_t l = label == nullptr ? 0 : label[i];
    out[i] = bias[l] + centred_dot(x + i * d, mean, weights + l * d, d);
  }
}

METARANK_KERNEL void add_rows(const float* x, const double* mean, const double* g, int64_t d, int64_t begin,
                              int64_t end, double* sum) {
  for (int64_t i = begin; i < end; ++i)
    for (int64_t j = 0; j < d; ++j) sum[j] += g[i] * (x[i * d + j] - mean[j]);
}

Array1<double> scores_of_rows(const In2<float>& values, const int32_t* labels, const In1<double>& mean,
                              const double* weights, const double* bias, int n_threads) {
  const size_t n = values.shape(0), d = values.shape(1);
  require(mean.shape(0) == d, "mean must have one entry a column of values");
  std::vector<double> out(n);
  parallel_for(n, n_threads, kRowBlock, [&](int64_t begin, int64_t end, int) {
    by_level<score_rows>(values.data(), labels, mean.data(), weights, bias, d, begin, end, out.data());
  });
  return to_array(std::move(out));
}

}  // namespace

Array1<double> linear_scores(In2<float> values, In1<double> mean, In1<double> weights, double bias, int n_threads) {
  require(weights.shape(0) == values.shape(1), "weights must have one entry a column of values");
  return scores_of_rows(values, nullptr, mean, weights.data(), &bias, n_threads);
}

Array1<double> label_linear_scores(In2<float> values, Ids labels, In1<double> mean, In2<double> weights,
                                   In1<double> bias, int n_threads) {
  require(weights.shape(1) == values.shape(1), "weights must have one column a column of values");
  require(bias.shape(0) == weights.shape(0), "bias must have one entry a row of weights");
  require(labels.shape(0) == values.shape(0), "labels must have one entry a row of values");
  require_in_range(labels, weights.shape(0), "labels");
  return scores_of_rows(values, labels.data(), mean, weights.data(), bias.data(), n_threads);
}

Array1<double> linear_gradient(In2<float> values, In1<double> mean, In1<double> g, int n_threads) {
  const int64_t m = values.shape(0), d = values.shape(1), n_blocks = (m + kRowBlock - 1) / kRowBlock;
  require(mean.shape(0) == values.shape(1), "mean must have one entry a column of values");
  require(g.shape(0) == values.shape(0), "g must have one entry a row of values");
  std::vector<double> out(d, 0.0), partial(n_blocks * d, 0.0);
  parallel_for(n_blocks, n_threads, 1, [&](int64_t b, int64_t, int) {
    by_level<add_rows>(values.data(), mean.data(), g.data(), d, b * kRowBlock, std::min(m, (b + 1) * kRowBlock),
                       partial.data() + b * d);
  });
  for (int64_t b = 0; b < n_blocks; ++b)
    for (int64_t j = 0; j < d; ++j) out[j] += partial[b * d + j];
  return to_array(std::move(out));
}

namespace {

// Only the labels asked for where they are few, all otherwise: the sums are the same.
struct PairSums {
  const float* W;
  const float* bias;
  int64_t n_labels;
  const int32_t* labels;
  int64_t n_pairs;
  float* out;
  bool few = 8 * n_pairs < n_labels;
  std::vector<float> sum;

  PairSums(const float* W, const float* bias, int64_t n_labels, const int32_t* labels, int64_t n_pairs, float* out)
      : W(W), bias(bias), n_labels(n_labels), labels(labels), n_pairs(n_pairs), out(out) {
    if (few)
      for (int64_t p = 0; p < n_pairs; ++p) out[p] = bias[labels[p]];
    else
      sum.assign(bias, bias + n_labels);
  }
  void add(int64_t feature, float x) {
    const float* w = W + feature * n_labels;
    if (few)
      for (int64_t p = 0; p < n_pairs; ++p) out[p] += x * w[labels[p]];
    else
      by_level<add_scaled<float, float>>(sum.data(), x, w, n_labels);
  }
  void finish() {
    if (few) return;
    for (int64_t p = 0; p < n_pairs; ++p) out[p] = sum[labels[p]];
  }
};

// each(i, add): add(feature, value) for the values of row i.
template <typename Each>
Array1<float> scores_of_pairs(int64_t n, int64_t n_features, const In2<float>& W, const Values& bias,
                              const Indptr& indptr, const Ids& labels, int n_threads, const Each& each) {
  require(static_cast<int64_t>(W.shape(0)) == n_features,
          "X must have " + std::to_string(W.shape(0)) + " columns, got " + std::to_string(n_features));
  require(bias.shape(0) == W.shape(1), "bias must have one entry a label");
  const auto L = static_cast<int64_t>(W.shape(1));
  require_pairs(indptr, labels, n, L);
  std::vector<float> out(labels.shape(0));
  parallel_for(n, n_threads, 64, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = indptr(i);
      PairSums pairs(W.data(), bias.data(), L, labels.data() + first, indptr(i + 1) - first, out.data() + first);
      each(i, [&](int64_t feature, float x) { pairs.add(feature, x); });
      pairs.finish();
    }
  });
  return to_array(std::move(out));
}

}  // namespace

Array1<float> linear_scores_dense(In2<float> X, In2<float> W, Values bias, Indptr indptr, Ids labels, int n_threads) {
  const auto n = static_cast<int64_t>(X.shape(0)), d = static_cast<int64_t>(X.shape(1));
  return scores_of_pairs(n, d, W, bias, indptr, labels, n_threads, [&](int64_t i, const auto& add) {
    const float* x = X.data() + i * d;
    for (int64_t j = 0; j < d; ++j)
      if (x[j] != 0.0f) add(j, x[j]);
  });
}

Array1<float> linear_scores_sparse(const CsrView& rows, In2<float> W, Values bias, Indptr indptr, Ids labels,
                                   int n_threads) {
  const SparseRows X = require_csr(rows);
  return scores_of_pairs(X.n_rows, rows.n_columns, W, bias, indptr, labels, n_threads, [&](int64_t i, const auto& add) {
    for (int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) add(X.indices[p], X.data[p]);
  });
}

}  // namespace metarank
