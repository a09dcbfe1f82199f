// The labels of the training rows as votes of the rows.
#pragma once

#include <optional>
#include <vector>

#include "arrays.h"
#include "scratch_pool.h"
#include "sparse_rows.h"
#include "topk.h"

namespace metarank {

// A neighbour of weight 0 (or number -1) has no vote. A vote for a label counts `worth` of it, or 1. Arrays stay
// where they are: they must outlive the votes.
class Votes {
 public:
  // `popular`: all labels by decreasing frequency; `text`: what the labels are called, a row of words each.
  Votes(Indptr row_indptr, Ids row_labels, Ids popular, In1<double> frequency, std::optional<In1<double>> worth,
        const std::optional<CsrView>& text);

  int64_t n_labels() const { return static_cast<int64_t>(frequency_.shape(0)); }

  // For each k of `ks` two columns (2 len(ks), m): share of the k neighbours that carry the label, and the share of
  // their weight times the label's worth. The labels of a list ascend.
  Array2<float> columns(In2<int32_t> rows, In2<float> weights, Indptr indptr, Ids labels, const std::vector<int>& ks,
                        int n_threads) const;

  // How alike a label's name is to the names of the other labels voted for (m): the sum over them of share of the
  // neighbours' weight times the product of the two names' rows.
  Array1<float> kin_by_name(In2<int32_t> rows, In2<float> weights, Indptr indptr, Ids labels, int n_threads) const;

  // The k labels of greatest score = share of the neighbours' weight * worth + tie * frequency, ties to the smaller
  // label; lists are completed from `popular`. Returns labels (ascending) and scores, both (n, k).
  TopLabels shortlist(In2<int32_t> rows, In2<float> weights, double tie, int k, int n_threads) const;

 private:
  struct Total {
    int64_t voters = 0;
    double weight = 0.0;
  };
  // The weight of each label voted for, zeros elsewhere.
  struct Sums {
    std::vector<double> weight, by_word;
    std::vector<int32_t> voted;
    Total total;
    void clear() {
      for (const int32_t label : voted) weight[label] = 0.0;
      voted.clear();
      total = {};
    }
  };

  double worth(int32_t label) const { return worth_ ? (*worth_)(label) : 1.0; }
  void check(const In2<int32_t>& rows, const In2<float>& weights) const;

  // Calls visit(label, weight) for each label of the neighbours first .. k - 1, and counts them.
  template <typename Visit>
  void for_each(const In2<int32_t>& rows, const In2<float>& weights, int64_t query, int64_t first, int64_t k,
                Total& total, const Visit& visit) const;
  // each(query, sums) for every query.
  template <typename Each>
  void for_each_query(const In2<int32_t>& rows, const In2<float>& weights, int n_threads, const Each& each) const;

  Indptr row_indptr_;
  Ids row_labels_, popular_;
  In1<double> frequency_;
  std::optional<In1<double>> worth_;
  std::optional<SparseRows> text_;
  int64_t n_words_ = 0;
  mutable ScratchPool<Sums> pool_;
};

}  // namespace metarank
