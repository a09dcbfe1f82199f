// How well does a document fit the text of a label?
//
// Labels and documents are rows of one sparse feature space. Sums are in double, features ascending, whether a pair is
// scored by itself or found through the postings: the cosine of a proposed label is the cosine of the pair, to the bit.
#pragma once

#include <tuple>
#include <vector>

#include "arrays.h"
#include "scored_lists.h"
#include "scratch_pool.h"
#include "sparse_rows.h"

namespace metarank {

// The labels' texts by label, and transposed: for each word the labels that hold it, ascending.
class LabelText {
 public:
  // A canonical CSR matrix (labels, features).
  explicit LabelText(const CsrView& text);

  int64_t n_features() const { return static_cast<int64_t>(labels_of_.start.size()) - 1; }
  int64_t n_labels() const { return static_cast<int64_t>(norm_.size()); }

  // (4, m) of the pairs of a CSR pattern: cosine, share of the words present, the same share by weight, number of
  // words.
  Array2<float> evidence(const CsrView& X, Indptr indptr, Ids labels, int n_threads) const;

  // (m) of the same pairs: the sum over the words of the label's text of `present` (d) where the row has the word, of
  // `absent` (d) where it has not.
  Array1<float> weighed(const CsrView& X, Indptr indptr, Ids labels, Values present, Values absent,
                        int n_threads) const;

  // (indptr, labels): the labels of each row all of whose words it has, ascending; no label without a word.
  std::tuple<Array1<int64_t>, Array1<int32_t>> held(const CsrView& X, int n_threads) const;

  // The labels of each row with the k highest cosines above 0, ascending by label; ties go to the smaller label.
  LabelLists shortlist(const CsrView& X, int64_t k, int n_threads) const;

 private:
  SparseRows rows_of(const CsrView& X) const { return require_canonical({X.indptr, X.indices, X.data, n_features()}); }
  // of(row number, value, pair, label) for each pair: `value` holds the row's value of every word.
  template <typename Of>
  void for_each_pair(const SparseRows& x, const Indptr& indptr, const Ids& labels, int n_threads, const Of& of) const;
  // visit(label, value in x, value in the label's text) for each word of x and each label that has it.
  template <typename Visit>
  void for_each_posting(const SparseRow& x, const Visit& visit) const;

  std::vector<int64_t> indptr_;
  std::vector<int32_t> words_;
  std::vector<float> values_;
  std::vector<double> norm_;
  Postings labels_of_;  // of a word
  mutable ScratchPool<std::vector<float>> word_pool_;    // a row's value of every word, zeros between rows
  mutable ScratchPool<std::vector<double>> label_pool_;  // its products with labels, zeros between rows
};

}  // namespace metarank
