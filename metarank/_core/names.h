// How well does a document fit the text of a label?
//
// Labels and documents are rows of one sparse feature space. Sums are in double,
// features ascending, whether a pair is scored by itself or found through the
// postings: the cosine of a proposed label is the cosine of the pair, to the bit.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "scratch_pool.h"

namespace metarank {

// The labels' texts by label, and transposed: for each word the labels that hold it, ascending.
class LabelText {
 public:
  // (indptr, labels, scores).
  using Lists = std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<float>>;

  // A canonical CSR matrix (labels, features).
  LabelText(std::int64_t n_features, const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices,
            const In1<float>& data);

  std::int64_t n_features() const { return static_cast<std::int64_t>(word_indptr_.size()) - 1; }
  std::int64_t n_labels() const { return static_cast<std::int64_t>(norm_.size()); }

  // (4, m) of the pairs of a CSR pattern: cosine, share of the words present, the same share by weight, number of
  // words.
  Array2<float> evidence(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                         const In1<float>& x_data, const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels,
                         int n_threads) const;

  // (m) of the same pairs: the sum over the words of the label's text of `present` (d) where the row has the word, of
  // `absent` (d) where it has not.
  Array1<float> weighed(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                        const In1<float>& x_data, const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels,
                        const In1<float>& present, const In1<float>& absent, int n_threads) const;

  // (indptr, labels): the labels of each row all of whose words it has, ascending; no label without a word.
  std::tuple<Array1<std::int64_t>, Array1<std::int32_t>> held(const In1<std::int64_t>& indptr,
                                                              const In1<std::int32_t>& indices,
                                                              const In1<float>& data, int n_threads) const;

  // The labels of each row with the k highest cosines above 0, ascending by label; ties go to the smaller label.
  Lists shortlist(const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices, const In1<float>& data,
                  std::int64_t k, int n_threads) const;

 private:
  struct Csr {
    std::int64_t n_rows;
    const std::int64_t* indptr;
    const std::int32_t* indices;
    const float* data;
  };
  struct Hit {
    float score;
    std::int32_t label;
  };

  LabelText(std::int64_t n_features, const Csr& text);
  static Csr checked_csr(const char* name, const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices,
                         const In1<float>& data, std::int64_t n_features);
  static double norm(const Csr& m, std::int64_t row);

  // of(row, value, first, last) for each row: `value` holds its value of every word, its pairs are first .. last.
  template <typename Of>
  void for_each_row(const Csr& x, const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, int n_threads,
                    const Of& of) const;
  // column[0], [stride], [2 stride], [3 stride]; `x` holds the document's value of every feature.
  void evidence_of(std::int32_t label, const float* x, double x_norm, float* column, std::int64_t stride) const;
  // `dots` holds n_labels zeros, before and after.
  void nearest(const Csr& x, std::int64_t row, std::size_t k, std::vector<double>& dots, std::vector<Hit>& hits) const;

  std::vector<std::int64_t> indptr_;
  std::vector<std::int32_t> words_;
  std::vector<float> values_;
  std::vector<double> norm_;
  std::vector<std::int64_t> word_indptr_;
  std::vector<std::int32_t> word_labels_;
  std::vector<float> word_values_;
  mutable ScratchPool<std::vector<float>> word_pool_;    // a row's value of every word, zeros between rows
  mutable ScratchPool<std::vector<double>> label_pool_;  // its products with labels, zeros between rows
};

}  // namespace metarank
