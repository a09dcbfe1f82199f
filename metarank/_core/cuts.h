// What cutting a ranked list needs: ranks, the shape of the list around each
// pair, and the expected F1 of every cut. Every sum runs over one list in its order.
#pragma once

#include <cstdint>

#include "arrays.h"

namespace metarank {

Array1<std::int32_t> list_ranks(In1<double> scores, In1<std::int64_t> indptr);

// Columns: 1, s, expected number of the other relevant labels, log(1 + rank), is best, best other score,
// lead over it, gap to the next better pair, gap to the next worse pair.
Array2<double> list_context(In1<double> scores, In1<std::int64_t> indptr);

Array1<std::int64_t> expected_f1_sizes(In1<double> probabilities, In1<std::int64_t> indptr, double unseen,
                                       std::int64_t max_size, bool allow_empty);

}  // namespace metarank
