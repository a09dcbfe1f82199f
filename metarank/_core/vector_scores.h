// Scores q . f + b of dense queries and labels: of all labels, or of some of each query.
//
// One product, `dot`, for either, so that a pair has the same score however it is asked for.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

Array2<float> vector_scores(const In2<float>& Q, const In2<float>& F, const In1<float>& bias, int n_threads);

Array1<float> vector_scores_of_pairs(const In2<float>& Q, const In2<float>& F, const In1<float>& bias,
                                     const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, int n_threads);

}  // namespace metarank
