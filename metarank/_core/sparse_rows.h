// Sparse rows in someone else's memory, and their postings.
#pragma once

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>
#include <algorithm>

#include "arrays.h"
#include "cpu_level.h"

namespace metarank {

struct SparseRow {
  const int32_t* index;
  const float* value;
  int64_t size;

  double sq_norm() const {
    double s = 0.0;
    for (int64_t j = 0; j < size; ++j) s += static_cast<double>(value[j]) * value[j];
    return s;
  }
  double l1_norm() const {
    double s = 0.0;
    for (int64_t j = 0; j < size; ++j) s += std::fabs(static_cast<double>(value[j]));
    return s;
  }
};

// A CSR matrix read row by row; checked once.
struct SparseRows {
  const int64_t* indptr;
  const int32_t* indices;
  const float* data;
  int64_t n_rows;

  SparseRow row(int64_t i) const { return {indices + indptr[i], data + indptr[i], indptr[i + 1] - indptr[i]}; }
};

// Columns lie in [0, X.n_columns).
SparseRows require_csr(const CsrView& X, const std::string& name = "X");
// They ascend within a row, too; errors speak of `name`.
SparseRows require_canonical(const CsrView& X, const std::string& name = "X");

// For each feature the rows that hold it, ascending; of a feature that at least one in so many rows holds, the values of
// all rows too: adding those takes less time, and products with a zero do not change a sum, so the bits are the same.
class Postings {
 public:
  Postings(const SparseRows& X, int64_t n_features, int64_t rows_per_posting);

  std::vector<int64_t> start;  // of a feature; one entry more than features
  std::vector<int32_t> row;
  std::vector<float> value;

  int64_t size(int64_t feature) const { return start[feature + 1] - start[feature]; }
  // Whether it is stored as a column of all rows.
  bool is_full(int64_t feature) const { return column_[feature] >= 0; }

  // sum[i] += v times the value of the feature in row i, for the first n rows.
  template <typename Sum>
  void add(int64_t feature, Sum v, int64_t n, Sum* sum) const;

 private:
  int64_t n_rows_;
  std::vector<int64_t> column_;  // by feature: where its column starts, -1 without one
  std::vector<float> columns_;
};

inline void require_in_range(const In1<int32_t>& ids, int64_t end, const std::string& name) {
  int32_t least = 0, greatest = -1;
  for (size_t p = 0; p < ids.shape(0); ++p) {
    least = std::min(least, ids.data()[p]);
    greatest = std::max(greatest, ids.data()[p]);
  }
  require(least >= 0 && greatest < end, name + " must lie in [0, " + std::to_string(end) + ")");
}

inline void require_pairs(const In1<int64_t>& indptr, const In1<int32_t>& labels, int64_t n_rows,
                          int64_t n_labels) {
  require(static_cast<int64_t>(indptr.shape(0)) == n_rows + 1,
          "candidates must have one list a row of X, got " + std::to_string(indptr.shape(0) - 1) + " for " +
              std::to_string(n_rows) + " rows");
  require_indptr(indptr, static_cast<int64_t>(labels.shape(0)), "candidates.indptr");
  require_in_range(labels, n_labels, "candidates.labels");
}

// At the interface: columns ascending and in range, values finite.
inline SparseRows require_rows(const CsrView& view, int64_t n_features) {
  const SparseRows rows = require_canonical({view.indptr, view.indices, view.data, n_features});
  for (size_t p = 0; p < view.data.shape(0); ++p) require(std::isfinite(view.data(p)), "X must be finite");
  return rows;
}

}  // namespace metarank
