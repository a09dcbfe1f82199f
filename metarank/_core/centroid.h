// Dense means of labels: L2 and cosine distance of each pair's row to the mean of the label's training points.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// Means of the rows of each label, rows added in the order given; a label without a row has the zero vector.
Array2<float> label_means(In2<float> X, In1<std::int64_t> label_indptr, In1<std::int32_t> label_rows, int n_threads);

// Two columns: L2, cosine. `known` marks the labels that have a point.
Array2<float> centroid_distances_dense(In2<float> centroids, In1<std::uint8_t> known, double max_sq_norm,
                                       In2<float> Q, In1<std::int64_t> pair_indptr, In1<std::int32_t> pair_labels,
                                       int n_threads);

// Squared norms of CSR rows, features ascending, in double; the arrays are checked to be canonical.
Array1<double> csr_sq_norms(std::int64_t n_features, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                            In1<float> data);

}  // namespace metarank
