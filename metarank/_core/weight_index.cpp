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

METARANK_DISPATCH void scale_sums(const float* scale, const float* bias, std::int64_t n, float* score) {
  for (std::int64_t l = 0; l < n; ++l) score[l] = score[l] * scale[l] + bias[l];
}

// The k best labels, in no order. Most labels are far from them: a block without one is passed over at a glance.
METARANK_DISPATCH void best_labels(const float* scores, std::int64_t n, std::int64_t k,
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
    for (std::int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p) {
      const auto l = static_cast<std::size_t>(labels.data()[p]);
      out[static_cast<std::size_t>(p)] = sum[l] * scale_.data()[l] + bias_.data()[l];
    }
  });
  return to_array(std::move(out));
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
    for_rows(X, n, n_threads, [&](std::int64_t i, std::vector<float>& score) {
      scale_sums(scale_.data(), bias_.data(), n_labels_, score.data());
      std::vector<std::int64_t> best;
      best_labels(score.data(), n_labels_, k, best);
      std::sort(best.begin(), best.end());
      for (std::size_t p = 0; p < best.size(); ++p) {
        labels[static_cast<std::size_t>(i) * cols + p] = static_cast<std::int32_t>(best[p]);
        scores[static_cast<std::size_t>(i) * cols + p] = score[static_cast<std::size_t>(best[p])];
      }
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
