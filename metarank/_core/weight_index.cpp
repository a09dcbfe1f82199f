#include "weight_index.h"

#include <algorithm>
#include <limits>

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"
#include "scratch_pool.h"
#include "simd.h"
#include "topk.h"

namespace metarank {

namespace {

METARANK_KERNEL void scale_sums(const float* scale, const float* bias, std::int64_t n, float* score) {
  for (std::int64_t l = 0; l < n; ++l) score[l] = score[l] * scale[l] + bias[l];
}

// The k best labels, in no order. Most labels are far from them: a block without one is passed over at a glance.
METARANK_KERNEL void best_labels(const float* scores, std::int64_t n, std::int64_t k,
                                 std::vector<std::int64_t>& heap) {
  constexpr std::int64_t kBlock = 32;
  const ScoreRow<float> row{nullptr, scores, n};
  heap.clear();
  for (std::int64_t j = 0; j < n; j += kBlock) {
    const std::int64_t end = std::min(n, j + kBlock);
    if (static_cast<std::int64_t>(heap.size()) == k) {
      const float least = scores[heap.front()];
      int above = 0;
      for (std::int64_t i = j; i < end; ++i) above |= scores[i] > least;
      if (above == 0) continue;
    }
    for (std::int64_t i = j; i < end; ++i) offer(row, i, k, heap);
  }
}

}  // namespace

template <typename Weight>
WeightIndex<Weight>::WeightIndex(std::int64_t n_features, const In1<std::int64_t>& start, const In1<std::uint16_t>& label,
            const In1<Weight>& weight, const In1<float>& scale, const In1<float>& bias)
    : n_features_(n_features),
      n_labels_(static_cast<std::int64_t>(scale.shape(0))),
      start_(start),
      label_(label),
      weight_(weight),
      scale_(scale),
      bias_(bias) {
  require(n_features >= 0, "n_features must be non-negative");
  require(bias.shape(0) == scale.shape(0), "bias and scale must have one entry a label");
  require(label.shape(0) == weight.shape(0), "label and weight must have the same length");
  require(static_cast<std::int64_t>(start.shape(0)) == n_bands() * n_features + 1,
          "start must have one entry for each band of labels and feature, and one more");
  n_listed_ = std::count_if(bias.data(), bias.data() + n_labels_,
                            [](float b) { return b != -std::numeric_limits<float>::infinity(); });
}

template <typename Weight>
Array1<float> WeightIndex<Weight>::scores(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                                          const In1<float>& x_data, const In1<std::int64_t>& indptr,
                                          const In1<std::int32_t>& labels, int n_threads) const {
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features_);
  const auto n = static_cast<std::int64_t>(x_indptr.shape(0)) - 1;
  require_pairs(indptr, labels, n, n_labels_);
  std::vector<float> out(labels.shape(0));
  for_rows(X, n, n_threads, [&](std::int64_t i, const std::vector<float>& sum) {
    const std::int64_t first = indptr(i);
    score_pairs(sum.data(), labels.data() + first, indptr(i + 1) - first, out.data() + first);
  });
  return to_array(std::move(out));
}

template <typename Weight>
void WeightIndex<Weight>::score_pairs(const float* sum, const std::int32_t* labels, std::int64_t n, float* out) const {
  for (std::int64_t p = 0; p < n; ++p) out[p] = sum[labels[p]] * scale_(labels[p]) + bias_(labels[p]);
}

template <typename Weight>
void WeightIndex<Weight>::list_labels(float* sums, std::int64_t k, std::int32_t* labels, float* scores) const {
  by_level<scale_sums>(scale_.data(), bias_.data(), n_labels_, sums);
  std::vector<std::int64_t> best;
  by_level<best_labels>(sums, n_labels_, k, best);
  std::sort(best.begin(), best.end());
  for (std::size_t p = 0; p < best.size(); ++p) {
    labels[p] = static_cast<std::int32_t>(best[p]);
    scores[p] = sums[best[p]];
  }
}

template <typename Weight>
Array2<float> WeightIndex<Weight>::sums(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                                        const In1<float>& x_data, int n_threads) const {
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features_);
  const std::size_t n = x_indptr.shape(0) - 1, L = static_cast<std::size_t>(n_labels_);
  std::vector<float> out(n * L);
  for_rows(X, static_cast<std::int64_t>(n), n_threads, [&](std::int64_t i, const std::vector<float>& sum) {
    std::copy_n(sum.begin(), L, out.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(i) * L));
  });
  return to_array(std::move(out), n, L);
}

template <typename Weight>
Array1<float> WeightIndex<Weight>::scores_of(const In2<float>& sums, const In1<std::int64_t>& indptr,
                                             const In1<std::int32_t>& labels) const {
  const auto n = static_cast<std::int64_t>(sums.shape(0));
  require(static_cast<std::int64_t>(sums.shape(1)) == n_labels_, "sums must have one column a label");
  require_pairs(indptr, labels, n, n_labels_);
  std::vector<float> out(labels.shape(0));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t first = indptr(i);
    score_pairs(sums.data() + i * n_labels_, labels.data() + first, indptr(i + 1) - first, out.data() + first);
  }
  return to_array(std::move(out));
}

template <typename Weight>
TopLabels WeightIndex<Weight>::shortlist_of(const In2<float>& sums, std::int64_t k) const {
  require(static_cast<std::int64_t>(sums.shape(1)) == n_labels_, "sums must have one column a label");
  require(0 <= k && k <= n_listed_, "k must be at most the number of labels that may be listed");
  const std::size_t rows = sums.shape(0), cols = static_cast<std::size_t>(k);
  std::vector<std::int32_t> labels(rows * cols);
  std::vector<float> scores(rows * cols), own;
  for (std::size_t i = 0; i < rows && k > 0; ++i) {
    own.assign(sums.data() + static_cast<std::int64_t>(i) * n_labels_,
               sums.data() + static_cast<std::int64_t>(i + 1) * n_labels_);
    list_labels(own.data(), k, labels.data() + i * cols, scores.data() + i * cols);
  }
  return std::make_tuple(to_array(std::move(labels), rows, cols), to_array(std::move(scores), rows, cols));
}

template <typename Weight>
TopLabels WeightIndex<Weight>::shortlist(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                                         const In1<float>& x_data, std::int64_t k, int n_threads) const {
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features_);
  const auto n = static_cast<std::int64_t>(x_indptr.shape(0)) - 1;
  require(0 <= k && k <= n_listed_, "k must be at most the number of labels that may be listed");
  const std::size_t rows = static_cast<std::size_t>(n), cols = static_cast<std::size_t>(k);
  std::vector<std::int32_t> labels(rows * cols);
  std::vector<float> scores(rows * cols);
  if (k > 0) {
    for_rows(X, n, n_threads, [&](std::int64_t i, std::vector<float>& sum) {
      const std::size_t at = static_cast<std::size_t>(i) * cols;
      list_labels(sum.data(), k, labels.data() + at, scores.data() + at);
    });
  }
  return std::make_tuple(to_array(std::move(labels), rows, cols), to_array(std::move(scores), rows, cols));
}

template <typename Weight>
template <typename Visit>
void WeightIndex<Weight>::for_rows(const SparseRows& X, std::int64_t n, int n_threads, const Visit& visit) const {
  parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
    auto sums = pool_.take([] { return std::make_unique<std::vector<float>>(); });
    // Room for whole bands: whatever an entry's two bytes say is inside.
    sums->resize(static_cast<std::size_t>(n_bands() * kBand));
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = X.indptr[i];
      add_row(X.indices + first, X.data + first, X.indptr[i + 1] - first, *sums);
      visit(i, *sums);
    }
    pool_.give_back(std::move(sums));
  });
}

template <typename Weight>
void WeightIndex<Weight>::add_row(const std::int32_t* feature, const float* x, std::int64_t nnz, std::vector<float>& sums) const {
  std::fill(sums.begin(), sums.begin() + n_labels_, 0.0f);
  for (std::int64_t band = 0; band < n_bands(); ++band) {
    float* sum = sums.data() + band * kBand;
    for (std::int64_t p = 0; p < nnz; ++p) {
      const float value = x[p];
      const std::int64_t* range = start_.data() + band * n_features_ + feature[p];
      const std::int64_t begin = range[0], end = range[1];
      require(0 <= begin && end <= static_cast<std::int64_t>(label_.shape(0)), "start must lie within the entries");
      for (std::int64_t e = begin; e < end; ++e)
        sum[label_.data()[e]] += value * static_cast<float>(weight_.data()[e]);
    }
  }
}

template class WeightIndex<float>;
template class WeightIndex<std::int16_t>;

}  // namespace metarank
