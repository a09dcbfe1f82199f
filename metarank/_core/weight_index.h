// Linear scores of all labels through an inverted index of their weights: feature -> (label, weight).
//
// One pass over the entries of a row's features gives every label's sum, and weights that are not stored cost nothing.
// Labels come in bands of 65,536, so that an entry's label takes two bytes and a band's sums stay in the cache. A
// label's sum adds the row's features in ascending order, whatever the batch:
//   score = scale[l] * (sum_f x_f q_fl) + bias[l].
#pragma once

#include <vector>

#include "arrays.h"
#include "scratch_pool.h"
#include "sparse_rows.h"
#include "topk.h"

namespace metarank {

constexpr int64_t kBand = 65536;

// Of 16-bit or of float32 weights. Arrays stay where they are: they must outlive the index.
template <typename Weight>
class WeightIndex {
 public:
  WeightIndex(int64_t n_features, Indptr start, In1<uint16_t> label, In1<Weight> weight, Values scale, Values bias);

  // Scores of given pairs.
  Array1<float> scores(const CsrView& X, Indptr indptr, Ids labels, int n_threads) const;

  // The k best labels of each row, by ascending label, and their scores. Labels of bias -inf are never listed;
  // the others must be at least k.
  TopLabels shortlist(const CsrView& X, int64_t k, int n_threads) const;

  // (n, L): the sums of all labels of a few rows, before scale and bias; `scores` and `shortlist` of them.
  Array2<float> sums(const CsrView& X, int n_threads) const;
  Array1<float> scores_of(In2<float> sums, Indptr indptr, Ids labels) const;
  TopLabels shortlist_of(In2<float> sums, int64_t k) const;

  // The weights label by label, (L, features), of sums before scale and bias.
  std::vector<Weight> by_label() const;
  int64_t n_features() const { return n_features_; }
  const Values& scale() const { return scale_; }
  const Values& bias() const { return bias_; }

 private:
  int64_t n_bands() const { return (n_labels_ + kBand - 1) / kBand; }
  SparseRows rows_of(const CsrView& X) const { return require_csr({X.indptr, X.indices, X.data, n_features_}); }

  void score_pairs(const float* sum, const Indptr& indptr, const Ids& labels, int64_t i, float* out) const;
  // The lists of n rows: each(list) calls list(i, sums of row i), which may write to the sums.
  template <typename Each>
  TopLabels lists_of(int64_t n, int64_t k, const Each& each) const;

  // Calls visit(row, sums of all labels); the visitor may write to the sums.
  template <typename Visit>
  void for_rows(const SparseRows& X, int n_threads, const Visit& visit) const;
  void add_row(const SparseRow& x, float* sums) const;

  int64_t n_features_, n_labels_, n_listed_;
  Indptr start_;
  In1<uint16_t> label_;
  In1<Weight> weight_;
  Values scale_, bias_;
  mutable ScratchPool<std::vector<float>> pool_;
};

}  // namespace metarank
