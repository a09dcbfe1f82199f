// Candidate lists of rows: their union, what their sources say of it, its foremost pairs, the table of its features,
// and what cutting a ranked list needs.
#pragma once

#include <tuple>
#include <vector>

#include "arrays.h"

namespace metarank {

// A part of the candidates: ascending labels of each row; scores where they are asked for.
struct ListView {
  Indptr indptr;
  Ids labels;
  Values scores;
};

// (indptr, labels): for each row the labels of any part, once, ascending as those of the parts are.
std::tuple<Array1<int64_t>, Array1<int32_t>> unite_lists(const std::vector<ListView>& parts);

// (m, 2 S + 1): for each of m pairs, its score in each of S proposals and its place there, from 0; last, its `own`
// value. A pair that a source does not propose has the least score of the source in the row, or 0, and the place
// `absent`.
Array2<float> proposal_columns(const std::vector<ListView>& parts, Indptr indptr, Ids labels, Values own, float absent,
                               int n_threads);

// (m): 1 for the k best pairs of each list, of equal scores the first.
Array1<uint8_t> foremost(In1<double> scores, In1<int64_t> indptr, int64_t k);

// (m): the evidence of the pairs that are `ahead`, in their order, and of each other pair its rough score, moved so
// that the best of them is `gap` below the least evidence of the list. A list without a pair ahead keeps rough scores.
Array1<double> with_pairs_behind(In1<double> evidence, In1<double> rough, In1<uint8_t> ahead, In1<int64_t> indptr,
                                 double gap);

// The feature table (m, own.size() + F): some of the F columns of m values as they are and, where `standardize`, all of
// them as z-scores within each list.
Array2<float> feature_table(const std::vector<In1<float>>& columns, In1<int64_t> indptr,
                            const std::vector<int64_t>& own, bool standardize, int n_threads);

Array1<int32_t> list_ranks(In1<double> scores, In1<int64_t> indptr);

// Columns: 1, s, expected number of the other relevant labels, log(1 + rank), is best, best other score,
// lead over it, gap to the next better pair, gap to the next worse pair.
Array2<double> list_context(In1<double> scores, In1<int64_t> indptr);

// The log-odds, never rising along a list from its best score (ties: the smaller label first). Neighbours whose
// log-odds rise share the log-odds of their mean probability (isotonic regression, by pooling adjacent violators).
Array1<double> falling_logits(In1<double> logits, In1<float> scores, In1<int64_t> indptr);

Array1<int64_t> expected_f1_sizes(In1<double> probabilities, In1<int64_t> indptr, double unseen, int64_t max_size,
                                  bool allow_empty);

// Logistic regression with terms of each label, shrunk towards the pooled ones.

// sum_j x_j (shared_j + by_label[l, j]) of each pair; labels have terms for the first columns of X.
Array1<double> label_logistic_scores(In2<double> X, In1<int32_t> index, In1<double> shared, In2<double> by_label);

// Newton's method from `shared` (p,) and `by_label` (k, q) on
//   sum_i weight_i log_loss_i + 1/2 sum_j ridge_j shared_j^2 + label_ridge / 2 |by_label|^2.
// No step raises the loss. The Hessian is an arrow: the labels' blocks are eliminated one by one.
std::tuple<Array1<double>, Array2<double>> fit_label_logistic(In2<double> X, In1<int32_t> index, In1<double> target,
                                                              In1<double> weight, In1<double> shared,
                                                              In2<double> by_label, In1<double> ridge,
                                                              double label_ridge);

}  // namespace metarank
