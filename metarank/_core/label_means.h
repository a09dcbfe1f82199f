// Sparse means of the training rows of each label, the smallest terms left out where a mean is to be short.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// Rows are added in the order given, in double. Of more than max_terms terms the greatest stay, ties to the
// smaller feature; sq_norm is that of the whole mean.
std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<float>, Array1<double>> label_means_sparse(
    std::int64_t n_features, In1<std::int64_t> indptr, In1<std::int32_t> indices, In1<float> data,
    In1<std::int64_t> label_indptr, In1<std::int32_t> label_rows, std::int64_t max_terms, int n_threads);

}  // namespace metarank
