// Linear scores: of table rows by their columns, and of pairs (row, label) by the features of a row.
#pragma once

#include "arrays.h"

namespace metarank {

// bias + (x - mean) . w of each row, or by the weights of its own label.
Array1<double> linear_scores(In2<float> values, In1<double> mean, In1<double> weights, double bias, int n_threads);
Array1<double> label_linear_scores(In2<float> values, Ids labels, In1<double> mean, In2<double> weights,
                                   In1<double> bias, int n_threads);

// sum_i g_i (x_i - mean): block sums folded in the order of the blocks.
Array1<double> linear_gradient(In2<float> values, In1<double> mean, In1<double> g, int n_threads);

// bias[l] + x . W[:, l]. Features are added one by one in ascending order, so a dense row and its sparse form give the
// same bytes.
Array1<float> linear_scores_dense(In2<float> X, In2<float> W, Values bias, Indptr indptr, Ids labels, int n_threads);
Array1<float> linear_scores_sparse(const CsrView& X, In2<float> W, Values bias, Indptr indptr, Ids labels,
                                   int n_threads);

}  // namespace metarank
