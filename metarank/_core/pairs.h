// The pairs (row, label) to be scored, at the door: safe to follow without further checks.
#pragma once

#include <algorithm>

#include "arrays.h"

namespace metarank {

inline void require_in_range(const In1<std::int32_t>& ids, std::int64_t end, const char* name) {
  std::int32_t least = 0, greatest = -1;
  for (std::size_t p = 0; p < ids.shape(0); ++p) {
    least = std::min(least, ids.data()[p]);
    greatest = std::max(greatest, ids.data()[p]);
  }
  require(least >= 0 && greatest < end, std::string(name) + " must lie in [0, " + std::to_string(end) + ")");
}

inline void require_pairs(const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, std::int64_t n_rows,
                          std::int64_t n_labels) {
  require(static_cast<std::int64_t>(indptr.shape(0)) == n_rows + 1,
          "indptr must have one entry more than X has rows, got " + std::to_string(indptr.shape(0)) + " for " +
              std::to_string(n_rows) + " rows");
  require(indptr(0) == 0 && indptr(static_cast<std::size_t>(n_rows)) == static_cast<std::int64_t>(labels.shape(0)),
          "indptr must start at 0 and end at the number of pairs");
  for (std::size_t i = 0; i < static_cast<std::size_t>(n_rows); ++i)
    require(indptr(i) <= indptr(i + 1), "indptr must not decrease");
  require_in_range(labels, n_labels, "labels");
}

// A CSR matrix read row by row; columns checked once.
struct SparseRows {
  const std::int64_t* indptr;
  const std::int32_t* indices;
  const float* data;
};

inline SparseRows require_csr(const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices,
                              const In1<float>& data, std::int64_t n_features) {
  require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), "X must be a CSR matrix");
  const std::size_t n = indptr.shape(0) - 1;
  require(indptr(0) == 0 && indptr(n) == static_cast<std::int64_t>(indices.shape(0)),
          "X.indptr must start at 0 and end at the number of stored values");
  for (std::size_t i = 0; i < n; ++i) require(indptr(i) <= indptr(i + 1), "X.indptr must not decrease");
  require_in_range(indices, n_features, "X.indices");
  return {indptr.data(), indices.data(), data.data()};
}

}  // namespace metarank
