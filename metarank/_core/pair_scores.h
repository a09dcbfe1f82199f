// Scores of pairs: the linear score and its gradient, and how well scores order lists.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

Array1<double> linear_scores(In2<float> values, In1<double> mean, In1<double> weights, double bias, int n_threads);

Array1<double> label_linear_scores(In2<float> values, In1<std::int32_t> labels, In1<double> mean, In2<double> weights,
                                   In1<double> bias, int n_threads);

// sum_i g_i (x_i - mean): block sums folded in the order of the blocks.
Array1<double> linear_gradient(In2<float> values, In1<double> mean, In1<double> g, int n_threads);

Array2<double> list_quality(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, int n_threads);

}  // namespace metarank
