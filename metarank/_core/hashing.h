// The fold of a row: hash(seed, row number) mod K.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

Array1<std::int32_t> fold_of_rows(std::int64_t n, std::int32_t n_folds, std::uint64_t seed);

}  // namespace metarank
