// Scores and distances of dense rows: of all pairs of two sets of rows, or of the pairs (row, label) of a CSR pattern.
//
// Each value depends on its two rows only, so that a pair has the same one however it is asked for.
#pragma once

#include <string>

#include "arrays.h"

namespace metarank {

// The distances ("squared_l2" or "l1") between two sets of rows, or exp(-gamma distance) where gamma > 0.
Array2<float> kernel_matrix(In2<float> A, In2<float> B, const std::string& metric, float gamma, int n_threads);

// bias[l] + sum_j exp(-gamma distance(x_i, support_j)) dual[l, j] for each pair (i, l).
Array1<float> kernel_machine(In2<float> X, In2<float> support, In2<float> dual, Values bias, const std::string& metric,
                             float gamma, Indptr indptr, Ids labels, int n_threads);

// q . f + b of all labels, or of some of each query.
Array2<float> vector_scores(In2<float> Q, In2<float> F, Values bias, int n_threads);
Array1<float> vector_scores_of_pairs(In2<float> Q, In2<float> F, Values bias, Indptr indptr, Ids labels, int n_threads);

// Two rows: L2 and cosine distance of each pair's row to the mean of the label. `known` marks the labels that have one.
Array2<float> centroid_distances_dense(In2<float> centroids, In1<uint8_t> known, double max_sq_norm, In2<float> Q,
                                       Indptr indptr, Ids labels, int n_threads);

}  // namespace metarank
