#include "linear_predict.h"

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"
#include "simd.h"

namespace metarank {

namespace {

METARANK_KERNEL void add_row(float x, const float* w, std::int64_t n_labels, float* sum) {
  for (std::int64_t l = 0; l < n_labels; ++l) sum[l] += x * w[l];
}

// Only the labels asked for where they are few, all otherwise: the sums are the same.
struct PairSums {
  const float* W;
  const float* bias;
  std::int64_t n_labels;
  const std::int32_t* labels;
  std::int64_t n_pairs;
  float* out;
  bool few = 8 * n_pairs < n_labels;
  std::vector<float> sum;

  PairSums(const float* W, const float* bias, std::int64_t n_labels, const std::int32_t* labels, std::int64_t n_pairs,
           float* out)
      : W(W), bias(bias), n_labels(n_labels), labels(labels), n_pairs(n_pairs), out(out) {
    if (few)
      for (std::int64_t p = 0; p < n_pairs; ++p) out[p] = bias[labels[p]];
    else
      sum.assign(bias, bias + n_labels);
  }
  void add(std::int64_t feature, float x) {
    const float* w = W + feature * n_labels;
    if (few)
      for (std::int64_t p = 0; p < n_pairs; ++p) out[p] += x * w[labels[p]];
    else
      by_level<add_row>(x, w, n_labels, sum.data());
  }
  void finish() {
    if (few) return;
    for (std::int64_t p = 0; p < n_pairs; ++p) out[p] = sum[static_cast<std::size_t>(labels[p])];
  }
};

void require_weights(const In2<float>& W, const In1<float>& bias, std::size_t n_features) {
  require(W.shape(0) == n_features, "X must have " + std::to_string(W.shape(0)) + " columns, got " +
                                        std::to_string(n_features));
  require(bias.shape(0) == W.shape(1), "bias must have one entry a label");
}

}  // namespace

Array1<float> linear_scores_dense(const In2<float>& X, const In2<float>& W, const In1<float>& bias,
                                  const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, int n_threads) {
  require_weights(W, bias, X.shape(1));
  const auto n = static_cast<std::int64_t>(X.shape(0)), d = static_cast<std::int64_t>(X.shape(1)),
             L = static_cast<std::int64_t>(W.shape(1));
  require_pairs(indptr, labels, n, L);
  std::vector<float> out(labels.shape(0));
  parallel_for(n, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = indptr.data()[i];
      PairSums pairs(W.data(), bias.data(), L, labels.data() + first, indptr.data()[i + 1] - first,
                     out.data() + first);
      const float* x = X.data() + i * d;
      for (std::int64_t j = 0; j < d; ++j)
        if (x[j] != 0.0f) pairs.add(j, x[j]);
      pairs.finish();
    }
  });
  return to_array(std::move(out));
}

Array1<float> linear_scores_sparse(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                                   const In1<float>& x_data, std::int64_t n_features, const In2<float>& W,
                                   const In1<float>& bias, const In1<std::int64_t>& indptr,
                                   const In1<std::int32_t>& labels, int n_threads) {
  require(n_features >= 0, "n_features must be non-negative");
  require_weights(W, bias, static_cast<std::size_t>(n_features));
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features);
  const auto n = static_cast<std::int64_t>(x_indptr.shape(0)) - 1, L = static_cast<std::int64_t>(W.shape(1));
  require_pairs(indptr, labels, n, L);
  std::vector<float> out(labels.shape(0));
  parallel_for(n, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = indptr.data()[i];
      PairSums pairs(W.data(), bias.data(), L, labels.data() + first, indptr.data()[i + 1] - first,
                     out.data() + first);
      for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) pairs.add(X.indices[p], X.data[p]);
      pairs.finish();
    }
  });
  return to_array(std::move(out));
}

}  // namespace metarank
