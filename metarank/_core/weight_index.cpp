// Linear scores of all labels through an inverted index of their weights: feature -> (label, weight).
//
// One pass over the entries of a row's features gives every label's sum, and weights that are not stored
// cost nothing. Labels come in bands of 65,536, so that an entry's label takes two bytes and a band's sums
// stay in the cache. A label's sum adds the row's features in ascending order, whatever the batch:
//   score = scale[l] * (sum_f x_f q_fl) + bias[l].
#include <algorithm>
#include <limits>

#include "bindings.h"
#include "pairs.h"
#include "simd.h"
#include "topk.h"

namespace metarank {

namespace {

constexpr std::int64_t kBand = 65536;

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

template <typename Weight>
struct WeightIndex {
  std::int64_t n_features, n_labels, n_entries;
  const std::int64_t* start;  // first entry of (band, feature)
  const std::uint16_t* label;
  const Weight* weight;
  const float* scale;
  const float* bias;

  std::int64_t n_bands() const { return (n_labels + kBand - 1) / kBand; }
  // Room for whole bands: whatever an entry's two bytes say is inside.
  std::vector<float> room() const { return std::vector<float>(static_cast<std::size_t>(n_bands() * kBand)); }
  // Scores of all labels.
  void score_row(const std::int32_t* feature, const float* x, std::int64_t nnz, std::vector<float>& score) const {
    std::fill(score.begin(), score.begin() + n_labels, 0.0f);
    for (std::int64_t band = 0; band < n_bands(); ++band) {
      float* sum = score.data() + band * kBand;
      for (std::int64_t p = 0; p < nnz; ++p) {
        const float value = x[p];
        const std::int64_t* range = start + band * n_features + feature[p];
        const std::int64_t begin = range[0], end = range[1];
        require(0 <= begin && end <= n_entries, "start must lie within the entries");
        for (std::int64_t e = begin; e < end; ++e) sum[label[e]] += value * static_cast<float>(weight[e]);
      }
    }
    scale_sums(scale, bias, n_labels, score.data());
  }
};

template <typename Weight>
WeightIndex<Weight> require_index(std::int64_t n_features, const In1<std::int64_t>& start,
                                  const In1<std::uint16_t>& label, const In1<Weight>& weight,
                                  const In1<float>& scale, const In1<float>& bias) {
  require(n_features >= 0, "n_features must be non-negative");
  require(bias.shape(0) == scale.shape(0), "bias and scale must have one entry a label");
  require(label.shape(0) == weight.shape(0), "label and weight must have the same length");
  const WeightIndex<Weight> index{n_features,   static_cast<std::int64_t>(scale.shape(0)),
                                  static_cast<std::int64_t>(label.shape(0)), start.data(), label.data(),
                                  weight.data(), scale.data(), bias.data()};
  require(static_cast<std::int64_t>(start.shape(0)) == index.n_bands() * n_features + 1,
          "start must have one entry for each band of labels and feature, and one more");
  return index;
}

// Scores of given pairs.
template <typename Weight>
Array1<float> index_scores(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                           const In1<float>& x_data, std::int64_t n_features, const In1<std::int64_t>& start,
                           const In1<std::uint16_t>& label, const In1<Weight>& weight, const In1<float>& scale,
                           const In1<float>& bias, const In1<std::int64_t>& indptr,
                           const In1<std::int32_t>& labels, int n_threads) {
  const auto index = require_index(n_features, start, label, weight, scale, bias);
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features);
  const auto n = static_cast<std::int64_t>(x_indptr.shape(0)) - 1;
  require_pairs(indptr, labels, n, index.n_labels);
  std::vector<float> out(labels.shape(0));
  {
    nb::gil_scoped_release release;
    parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
      std::vector<float> score = index.room();
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = X.indptr[i];
        index.score_row(X.indices + first, X.data + first, X.indptr[i + 1] - first, score);
        for (std::int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p)
          out[static_cast<std::size_t>(p)] = score[static_cast<std::size_t>(labels.data()[p])];
      }
    });
  }
  return to_numpy(std::move(out));
}

// The k best labels of each row, by ascending label, and their scores. Labels of bias -inf are never listed;
// the others must be at least k.
template <typename Weight>
nb::tuple index_shortlist(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                          const In1<float>& x_data, std::int64_t n_features, const In1<std::int64_t>& start,
                          const In1<std::uint16_t>& label, const In1<Weight>& weight, const In1<float>& scale,
                          const In1<float>& bias, std::int64_t k, int n_threads) {
  const auto index = require_index(n_features, start, label, weight, scale, bias);
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features);
  const auto n = static_cast<std::int64_t>(x_indptr.shape(0)) - 1;
  const auto n_listed = std::count_if(bias.data(), bias.data() + index.n_labels,
                                      [](float b) { return b != -std::numeric_limits<float>::infinity(); });
  require(0 <= k && k <= n_listed, "k must be at most the number of labels that may be listed");
  const std::size_t rows = static_cast<std::size_t>(n), cols = static_cast<std::size_t>(k);
  std::vector<std::int32_t> labels(rows * cols);
  std::vector<float> scores(rows * cols);
  if (k > 0) {
    nb::gil_scoped_release release;
    parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
      std::vector<float> score = index.room();
      std::vector<std::int64_t> best;
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = X.indptr[i];
        index.score_row(X.indices + first, X.data + first, X.indptr[i + 1] - first, score);
        best_labels(score.data(), index.n_labels, k, best);
        std::sort(best.begin(), best.end());
        for (std::size_t p = 0; p < best.size(); ++p) {
          labels[static_cast<std::size_t>(i) * cols + p] = static_cast<std::int32_t>(best[p]);
          scores[static_cast<std::size_t>(i) * cols + p] = score[static_cast<std::size_t>(best[p])];
        }
      }
    });
  }
  return nb::make_tuple(to_numpy(std::move(labels), rows, cols), to_numpy(std::move(scores), rows, cols));
}

template <typename Weight>
void bind_weight(nb::module_& m) {
  m.def("index_scores", &index_scores<Weight>, nb::arg("x_indptr").noconvert(), nb::arg("x_indices").noconvert(),
        nb::arg("x_data").noconvert(), nb::arg("n_features"), nb::arg("start").noconvert(),
        nb::arg("label").noconvert(), nb::arg("weight").noconvert(), nb::arg("scale").noconvert(),
        nb::arg("bias").noconvert(), nb::arg("indptr").noconvert(), nb::arg("labels").noconvert(),
        nb::arg("n_threads"));
  m.def("index_shortlist", &index_shortlist<Weight>, nb::arg("x_indptr").noconvert(),
        nb::arg("x_indices").noconvert(), nb::arg("x_data").noconvert(), nb::arg("n_features"),
        nb::arg("start").noconvert(), nb::arg("label").noconvert(), nb::arg("weight").noconvert(),
        nb::arg("scale").noconvert(), nb::arg("bias").noconvert(), nb::arg("k"), nb::arg("n_threads"));
}

}  // namespace

void bind_weight_index(nb::module_& m) {
  bind_weight<std::int16_t>(m);  // classifiers, quantised
  bind_weight<float>(m);         // exact
}

}  // namespace metarank
