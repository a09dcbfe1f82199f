// The feature table, and z-scores of each column within each row's candidate list.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// (m, own.size() + F): some of the F columns of m values as they are and, where `standardize`, all of them as z-scores
// within each list.
Array2<float> feature_table(const std::vector<In1<float>>& columns, In1<std::int64_t> indptr,
                            const std::vector<std::int64_t>& own, bool standardize, int n_threads);

}  // namespace metarank
