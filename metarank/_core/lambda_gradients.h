// LambdaRank (Burges 2010) as LightGBM computes it, and nDCG itself, on lists.
//
// A pair of different gains, of which one stands among the first `truncation`
// ranks, weighs |gain difference| |discount difference| / ideal DCG. With
// `norm` the weight is divided by 0.01 + |score difference|, and a list's sums
// by what makes their total log2(1 + total). Ranks are those of `rank_by`.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// The greatest DCG of the first `truncation` ranks that each list can have.
Array1<double> ideal_dcg(In1<double> gains, In1<std::int64_t> indptr, std::int64_t truncation, int n_threads);

// `scores` and `rank_by` are in the caller's order of rows, `gains` list by list as `order` puts them.
std::tuple<double, Array1<double>, Array1<double>> lambda_gradients(In1<double> scores, In1<double> rank_by,
                                                                    In1<double> gains, In1<double> ideal,
                                                                    In1<std::int64_t> order, In1<std::int64_t> indptr,
                                                                    double sigmoid, std::int64_t truncation,
                                                                    bool norm, bool with_loss, int n_threads);

// nDCG of the first `truncation` ranks of each list; NaN where no gain is positive. Tied rows share
// the mean of their gains, so that their order does not matter.
Array1<double> list_ndcg(In1<double> scores, In1<double> gains, In1<double> ideal, In1<std::int64_t> order,
                         In1<std::int64_t> indptr, std::int64_t truncation, int n_threads);

}  // namespace metarank
