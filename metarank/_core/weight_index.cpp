#include "weight_index.h"

#include <algorithm>
#include <limits>

#include "sparse_rows.h"
#include "parallel.h"
#include "simd.h"

namespace metarank {

namespace {

METARANK_KERNEL void scale_sums(const float* scale, const float* bias, int64_t n, float* score) {
  for (int64_t l = 0; l < n; ++l) score[l] = score[l] * scale[l] + bias[l];
}

// The k best labels, in no order. Most labels are far from them: a block without one is passed over at a glance.
METARANK_KERNEL void best_labels(const float* scores, int64_t n, int64_t k, std::vector<int64_t>& heap) {
  constexpr int64_t kBlock = 32;
  const ScoreRow<float> row{nullptr, scores, n};
  heap.clear();
  for (int64_t j = 0; j < n; j += kBlock) {
    const int64_t end = std::min(n, j + kBlock);
    if (static_cast<int64_t>(heap.size()) == k) {
      const float least = scores[heap.front()];
      int above = 0;
      for (int64_t i = j; i < end; ++i) above |= scores[i] > least;
      if (above == 0) continue;
    }
    for (int64_t i = j; i < end; ++i) offer(row, i, k, heap);
  }
}

}  // namespace

template <typename Weight>
WeightIndex<Weight>::WeightIndex(int64_t n_features, Indptr start, In1<uint16_t> label, In1<Weight> weight,
                                 Values scale, Values bias)
    : n_features_(n_features),
      n_labels_(static_cast<int64_t>(scale.shape(0))),
      start_(start),
      label_(label),
      weight_(weight),
      scale_(scale),
      bias_(bias) {
  require(n_features >= 0, "n_features must be non-negative");
  require(bias.shape(0) == scale.shape(0), "bias and scale must have one entry a label");
  require(label.shape(0) == weight.shape(0), "label and weight must have the same length");
  require(static_cast<int64_t>(start.shape(0)) == n_bands() * n_features + 1,
          "start must have one entry for each band of labels and feature, and one more");
  n_listed_ = n_labels_ - std::count(bias.data(), bias.data() + n_labels_, -std::numeric_limits<float>::infinity());
}

template <typename Weight>
Array1<float> WeightIndex<Weight>::scores(const CsrView& X, Indptr indptr, Ids labels, int n_threads) const {
  const SparseRows rows = rows_of(X);
  require_pairs(indptr, labels, rows.n_rows, n_labels_);
  std::vector<float> out(labels.shape(0));
  for_rows(rows, n_threads, [&](int64_t i, const float* sum) { score_pairs(sum, indptr, labels, i, out.data()); });
  return to_array(std::move(out));
}

template <typename Weight>
void WeightIndex<Weight>::score_pairs(const float* sum, const Indptr& indptr, const Ids& labels, int64_t i,
                                      float* out) const {
  for (int64_t p = indptr(i); p < indptr(i + 1); ++p) out[p] = sum[labels(p)] * scale_(labels(p)) + bias_(labels(p));
}

template <typename Weight>
Array2<float> WeightIndex<Weight>::sums(const CsrView& X, int n_threads) const {
  const SparseRows rows = rows_of(X);
  std::vector<float> out(rows.n_rows * n_labels_);
  for_rows(rows, n_threads,
           [&](int64_t i, const float* sum) { std::copy_n(sum, n_labels_, out.begin() + i * n_labels_); });
  return to_array(std::move(out), rows.n_rows, n_labels_);
}

template <typename Weight>
Array1<float> WeightIndex<Weight>::scores_of(In2<float> sums, Indptr indptr, Ids labels) const {
  const auto n = static_cast<int64_t>(sums.shape(0));
  require(static_cast<int64_t>(sums.shape(1)) == n_labels_, "sums must have one column a label");
  require_pairs(indptr, labels, n, n_labels_);
  std::vector<float> out(labels.shape(0));
  for (int64_t i = 0; i < n; ++i) score_pairs(sums.data() + i * n_labels_, indptr, labels, i, out.data());
  return to_array(std::move(out));
}

template <typename Weight>
template <typename Each>
TopLabels WeightIndex<Weight>::lists_of(int64_t n, int64_t k, const Each& each) const {
  require(0 <= k && k <= n_listed_, "k must be at most the number of labels that may be listed");
  std::vector<int32_t> labels(n * k);
  std::vector<float> scores(n * k);
  if (k > 0)
    each([&](int64_t i, float* sums) {
      by_level<scale_sums>(scale_.data(), bias_.data(), n_labels_, sums);
      std::vector<int64_t> best;
      by_level<best_labels>(sums, n_labels_, k, best);
      std::sort(best.begin(), best.end());
      for (int64_t j = 0; j < k; ++j) {
        labels[i * k + j] = static_cast<int32_t>(best[j]);
        scores[i * k + j] = sums[best[j]];
      }
    });
  return {to_array(std::move(labels), n, k), to_array(std::move(scores), n, k)};
}

template <typename Weight>
TopLabels WeightIndex<Weight>::shortlist_of(In2<float> sums, int64_t k) const {
  require(static_cast<int64_t>(sums.shape(1)) == n_labels_, "sums must have one column a label");
  const auto n = static_cast<int64_t>(sums.shape(0));
  std::vector<float> copy(sums.data(), sums.data() + sums.size());
  return lists_of(n, k, [&](const auto& list) {
    for (int64_t i = 0; i < n; ++i) list(i, copy.data() + i * n_labels_);
  });
}

template <typename Weight>
TopLabels WeightIndex<Weight>::shortlist(const CsrView& X, int64_t k, int n_threads) const {
  const SparseRows rows = rows_of(X);
  return lists_of(rows.n_rows, k, [&](const auto& list) { for_rows(rows, n_threads, list); });
}

template <typename Weight>
std::vector<Weight> WeightIndex<Weight>::by_label() const {
  std::vector<Weight> out(n_labels_ * n_features_);
  require_indptr(start_, static_cast<int64_t>(label_.shape(0)), "start");
  for (int64_t list = 0; list < n_bands() * n_features_; ++list)
    for (int64_t e = start_(list); e < start_(list + 1); ++e) {
      const int64_t label = list / n_features_ * kBand + label_(e);
      require(label < n_labels_, "label must be one of the labels");
      out[label * n_features_ + list % n_features_] = weight_(e);
    }
  return out;
}

template <typename Weight>
template <typename Visit>
void WeightIndex<Weight>::for_rows(const SparseRows& X, int n_threads, const Visit& visit) const {
  parallel_for(X.n_rows, n_threads, 16, [&](int64_t begin, int64_t end, int) {
    const auto sums = pool_.take();
    sums->resize(n_bands() * kBand);  // whole bands: whatever an entry's two bytes say is inside
    for (int64_t i = begin; i < end; ++i) {
      add_row(X.row(i), sums->data());
      visit(i, sums->data());
    }
  });
}

template <typename Weight>
void WeightIndex<Weight>::add_row(const SparseRow& x, float* sums) const {
  std::fill_n(sums, n_labels_, 0.0f);
  for (int64_t band = 0; band < n_bands(); ++band, sums += kBand)
    for (int64_t p = 0; p < x.size; ++p) {
      const float value = x.value[p];
      const int64_t* range = start_.data() + band * n_features_ + x.index[p];
      const int64_t begin = range[0], end = range[1];
      require(0 <= begin && end <= static_cast<int64_t>(label_.shape(0)), "start must lie within the entries");
      for (int64_t e = begin; e < end; ++e) sums[label_(e)] += value * static_cast<float>(weight_(e));
    }
}

template class WeightIndex<float>;
template class WeightIndex<int16_t>;

}  // namespace metarank
