// Linear scores of all labels through an inverted index of their weights: feature -> (label, weight).
//
// One pass over the entries of a row's features gives every label's sum, and weights that are not stored
// cost nothing. Labels come in bands of 65,536, so that an entry's label takes two bytes and a band's sums
// stay in the cache. A label's sum adds the row's features in ascending order, whatever the batch:
//   score = scale[l] * (sum_f x_f q_fl) + bias[l].
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "pairs.h"
#include "scratch_pool.h"
#include "topk.h"

namespace metarank {

constexpr std::int64_t kBand = 65536;

// Of 16-bit or of float32 weights. Arrays stay where they are: they must outlive the index.
template <typename Weight>
class WeightIndex {
 public:
  WeightIndex(std::int64_t n_features, const In1<std::int64_t>& start, const In1<std::uint16_t>& label,
              const In1<Weight>& weight, const In1<float>& scale, const In1<float>& bias);

  // Scores of given pairs.
  Array1<float> scores(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                       const In1<float>& x_data, const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels,
                       int n_threads) const;

  // The k best labels of each row, by ascending label, and their scores. Labels of bias -inf are never listed;
  // the others must be at least k.
  TopLabels shortlist(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices, const In1<float>& x_data,
                      std::int64_t k, int n_threads) const;

  // (n, L): the sums of all labels of a few rows, before scale and bias, for `scores_of` and `shortlist_of`.
  Array2<float> sums(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices, const In1<float>& x_data,
                     int n_threads) const;

  // `scores` and `shortlist` of rows whose sums are known.
  Array1<float> scores_of(const In2<float>& sums, const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels) const;
  TopLabels shortlist_of(const In2<float>& sums, std::int64_t k) const;

 private:
  // Of one row: score of a pair each, and the k best labels.
  void score_pairs(const float* sum, const std::int32_t* labels, std::int64_t n, float* out) const;
  void list_labels(float* sums, std::int64_t k, std::int32_t* labels, float* scores) const;

  std::int64_t n_bands() const { return (n_labels_ + kBand - 1) / kBand; }

  // Calls visit(row, sums of all labels); the visitor may write to the sums.
  template <typename Visit>
  void for_rows(const SparseRows& X, std::int64_t n, int n_threads, const Visit& visit) const;

  // Sums of all labels, before scale and bias.
  void add_row(const std::int32_t* feature, const float* x, std::int64_t nnz, std::vector<float>& sums) const;

  std::int64_t n_features_, n_labels_, n_listed_ = 0;
  In1<std::int64_t> start_;
  In1<std::uint16_t> label_;
  In1<Weight> weight_;
  In1<float> scale_, bias_;
  mutable ScratchPool<std::vector<float>> pool_;
};

}  // namespace metarank
