// Where the relevant labels of each row stand, all that the ranking metrics ask of the scores; and the labels that come
// first.
//
// For every relevant pair (row, label) with score s, among the labels of its row:
//   rank       its place by descending score, ties in the order of the row; inf if it is not listed
//   last       number of labels with a score >= s: its place if ties are counted against it
//   above      number of irrelevant labels with a score > s
//   not_below  number of irrelevant labels with a score >= s
// Labels that are not listed are tied with each other below all that are.
//
// No row is sorted. Its r relevant labels are, and every other label is counted at the place where it would stand among
// them: O(m log r) for m scores.
#pragma once

#include <tuple>

#include "arrays.h"
#include "topk.h"

namespace metarank {

// (rank, last, above, not_below), one a relevant pair.
using StandingArrays = std::tuple<Array1<double>, Array1<int64_t>, Array1<int64_t>, Array1<int64_t>>;

template <typename T>
StandingArrays standing_listed(Indptr y_indptr, Ids y_labels, Indptr indptr, Ids labels, In1<T> scores,
                               int64_t n_labels, int n_threads);

// The k best labels of each row of a dense or sparse score matrix, padded with -1 and -inf.
template <typename T>
TopLabels top_k_dense(In2<T> scores, int64_t k, int n_threads);
template <typename T>
TopLabels top_k_listed(Indptr indptr, Ids labels, In1<T> scores, int64_t k, int n_threads);

// The values of each row in descending order.
Array1<double> descending_rows(Indptr indptr, In1<double> values);

}  // namespace metarank
