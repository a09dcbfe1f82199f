// The labels of the training rows as votes of the rows.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "scratch_pool.h"
#include "topk.h"

namespace metarank {

// What the labels are called: one row of words a label.
struct LabelWords {
  In1<std::int64_t> indptr;
  In1<std::int32_t> words;
  In1<float> values;
  std::int64_t n_words;
};

// A neighbour of weight 0 (or number -1) has no vote. A vote for a label counts `worth` of it, or 1. Arrays stay
// where they are: they must outlive the votes.
class Votes {
 public:
  // `popular`: all labels by decreasing frequency.
  Votes(const In1<std::int64_t>& row_indptr, const In1<std::int32_t>& row_labels, const In1<std::int32_t>& popular,
        const In1<double>& frequency, const std::optional<In1<double>>& worth, const std::optional<LabelWords>& text);

  std::int64_t n_labels() const { return static_cast<std::int64_t>(frequency_.shape(0)); }

  // For each k of `ks` two columns (2 len(ks), m): share of the k neighbours that carry the label, and the share of
  // their weight times the label's worth. The labels of a list ascend.
  Array2<float> columns(const In2<std::int32_t>& rows, const In2<float>& weights, const In1<std::int64_t>& indptr,
                        const In1<std::int32_t>& labels, const std::vector<int>& ks, int n_threads) const;

  // How alike a label's name is to the names of the other labels voted for (m): the sum over them of share of the
  // neighbours' weight times the product of the two names' rows.
  Array1<float> kin_by_name(const In2<std::int32_t>& rows, const In2<float>& weights, const In1<std::int64_t>& indptr,
                            const In1<std::int32_t>& labels, int n_threads) const;

  // The k labels of greatest score = share of the neighbours' weight * worth + tie * frequency, ties to the smaller label;
  // lists are completed from `popular`. Returns labels (ascending) and scores, both (n, k).
  TopLabels shortlist(const In2<std::int32_t>& rows, const In2<float>& weights, double tie, int k,
                      int n_threads) const;

 private:
  struct Total {
    std::int64_t voters = 0;
    double weight = 0.0;
  };

  double worth(std::int32_t label) const { return worth_ ? worth_->data()[label] : 1.0; }

  void check(const In2<std::int32_t>& rows, const In2<float>& weights) const;

  // Calls visit(label, weight) for each label of the neighbours first .. k - 1, and counts them.
  template <typename Visit>
  void for_each(const In2<std::int32_t>& rows, const In2<float>& weights, std::int64_t query, std::int64_t first,
                std::int64_t k, Total& total, const Visit& visit) const;

  In1<std::int64_t> row_indptr_;
  In1<std::int32_t> row_labels_, popular_;
  In1<double> frequency_;
  std::optional<In1<double>> worth_;
  std::optional<LabelWords> text_;
  mutable ScratchPool<std::vector<double>> pool_;       // weights by label, zeros between queries
  mutable ScratchPool<std::vector<double>> word_pool_;  // and by word
};

}  // namespace metarank
