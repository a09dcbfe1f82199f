// The union of candidate lists of the same rows.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "arrays.h"

namespace metarank {

// (indptr, labels): for each row the labels of any part, once, ascending as those of the parts are.
std::tuple<Array1<std::int64_t>, Array1<std::int32_t>> unite_lists(
    const std::vector<In1<std::int64_t>>& indptr, const std::vector<In1<std::int32_t>>& labels);

}  // namespace metarank
