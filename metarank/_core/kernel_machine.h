// Kernel machines: Gaussian and Laplacian kernels between two sets of rows, and scores of all labels from one
// kernel row.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// The distances between two sets of rows, or exp(-gamma distance) where gamma > 0.
Array2<float> kernel_matrix(const In2<float>& A, const In2<float>& B, const std::string& metric_name, float gamma,
                            int n_threads);

// bias[l] + sum_j exp(-gamma distance(x_i, support_j)) dual[l, j] for each pair (i, l).
Array1<float> kernel_machine(const In2<float>& X, const In2<float>& support, const In2<float>& dual,
                             const In1<float>& bias, const std::string& metric_name, float gamma,
                             const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, int n_threads);

}  // namespace metarank
