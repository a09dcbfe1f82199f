// What cutting a ranked list needs: ranks, the shape of the list around each
// pair, calibration by a logistic model with label terms, and the expected F1
// of every cut. Every sum runs over one list, or over all pairs, in their order.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

Array1<std::int32_t> list_ranks(In1<double> scores, In1<std::int64_t> indptr);

// Columns: 1, s, expected number of the other relevant labels, log(1 + rank), is best, best other score,
// lead over it, gap to the next better pair, gap to the next worse pair.
Array2<double> list_context(In1<double> scores, In1<std::int64_t> indptr);

Array1<double> label_logistic_scores(In2<double> X, In1<std::int32_t> index, In1<double> shared,
                                     In2<double> by_label);

// Log loss of the logistic model with label terms, its gradient, and the blocks of its Hessian that are not zero.
std::tuple<double, Array1<double>, Array2<double>, Array2<double>, Array2<double>> label_logistic_terms(
    In2<double> X, In1<std::int32_t> index, In1<double> target, In1<double> weight, In1<double> shared,
    In2<double> by_label);

Array1<std::int64_t> expected_f1_sizes(In1<double> probabilities, In1<std::int64_t> indptr, double unseen,
                                       std::int64_t max_size, bool allow_empty);

}  // namespace metarank
