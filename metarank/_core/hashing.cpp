#include "hashing.h"

#include "arrays.h"
#include "rng.h"

namespace metarank {

Array1<std::int32_t> fold_of_rows(std::int64_t n, std::int32_t n_folds, std::uint64_t seed) {
  require(n >= 0, "n must be non-negative");
  require(n_folds >= 1, "n_folds must be positive");
  std::vector<std::int32_t> fold(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    fold[static_cast<std::size_t>(i)] =
        static_cast<std::int32_t>(hash_pair(seed, static_cast<std::uint64_t>(i)) % static_cast<std::uint64_t>(n_folds));
  return to_array(std::move(fold));
}

}  // namespace metarank
