// Linear scores of pairs (row, label): bias[l] + x . W[:, l].
//
// Features are added one by one in ascending order, so a dense row and its sparse form give the same bytes.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

Array1<float> linear_scores_dense(const In2<float>& X, const In2<float>& W, const In1<float>& bias,
                                  const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, int n_threads);

Array1<float> linear_scores_sparse(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                                   const In1<float>& x_data, std::int64_t n_features, const In2<float>& W,
                                   const In1<float>& bias, const In1<std::int64_t>& indptr,
                                   const In1<std::int32_t>& labels, int n_threads);

}  // namespace metarank
