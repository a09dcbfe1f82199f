// Label vectors, eq. 3 of XReg: the unit vector along v_l = sum_i y_il x_i, within the subspace where the
// label vectors lie for the most part.
//
// The subspace is found by randomised subspace iteration (Halko, Martinsson and Tropp 2011): with any
// vectors S of the labels, B = V' S = X' (Y S) spans it, the better the nearer S is to the label vectors
// themselves; it costs one pass over the rows. A second pass projects the rows on an orthonormal basis of
// B and adds them up by label. Clustering then works on short dense vectors that have lost noise most of all.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// B = X' Y S, of as many rows as X has columns; S holds a row a label.
Array2<float> feature_range(In1<std::int64_t> x_indptr, In1<std::int32_t> x_indices, In1<float> x_data,
                            std::int64_t n_features, In1<std::int64_t> y_indptr, In1<std::int32_t> y_indices,
                            In1<float> y_data, In2<float> S, int n_threads);

// Rows of Y' X Q of unit length, zero for labels without a point.
Array2<float> label_vectors(In1<std::int64_t> x_indptr, In1<std::int32_t> x_indices, In1<float> x_data,
                            In1<std::int64_t> y_indptr, In1<std::int32_t> y_indices, In1<float> y_data,
                            std::int64_t n_labels, In2<float> Q, int n_threads);

}  // namespace metarank
