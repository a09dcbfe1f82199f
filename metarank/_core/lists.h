// Scored lists at the door: indptr must cut the pairs, and numbers must be comparable.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "arrays.h"

namespace metarank {

// The number of lists, once indptr is known to be safe to follow.
inline std::int64_t require_lists(const In1<std::int64_t>& indptr, std::size_t n_pairs) {
  require(indptr.shape(0) >= 1, "indptr must have at least one entry");
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  require(indptr(0) == 0 && indptr(n) == static_cast<std::int64_t>(n_pairs),
          "indptr must start at 0 and end at the number of pairs");
  for (std::int64_t i = 0; i < n; ++i) require(indptr(i) <= indptr(i + 1), "indptr must not decrease");
  return n;
}

// Sorting needs an order, which NaN has not.
template <typename T>
void require_finite(const In1<T>& values, const char* name) {
  for (std::size_t i = 0; i < values.shape(0); ++i)
    require(std::isfinite(values(i)), std::string(name) + " must be finite");
}

}  // namespace metarank
