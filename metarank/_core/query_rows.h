// Rows of X, sparse or dense, as lists of (feature, value). A dense zero counts as absent.
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "arrays.h"
#include "inverted_index.h"

namespace metarank {

struct QueryRows {
  std::int64_t n_rows, n_features;
  const std::int64_t* indptr;  // CSR; null where dense
  const std::int32_t* indices;
  const float* data;  // of the CSR, or C-contiguous (n_rows, n_features)
};

// At the door: columns ascending and in range, values finite.
inline QueryRows require_rows(const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices,
                              const In1<float>& data, std::int64_t n_features) {
  require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), "X must be a CSR matrix");
  const QueryRows X{static_cast<std::int64_t>(indptr.shape(0)) - 1, n_features, indptr.data(), indices.data(),
                    data.data()};
  check_csr(X.n_rows, n_features, X.indptr, static_cast<std::int64_t>(indices.shape(0)), X.indices);
  for (std::size_t p = 0; p < data.shape(0); ++p) require(std::isfinite(X.data[p]), "X must be finite");
  return X;
}

inline QueryRows require_rows(const In2<float>& X, std::int64_t n_features) {
  require(static_cast<std::int64_t>(X.shape(1)) == n_features,
          "X must have " + std::to_string(n_features) + " columns, got " + std::to_string(X.shape(1)));
  for (std::size_t p = 0; p < X.size(); ++p) require(std::isfinite(X.data()[p]), "X must be finite");
  return {static_cast<std::int64_t>(X.shape(0)), n_features, nullptr, nullptr, X.data()};
}

// Some of the rows at a time; what was read before is overwritten.
class RowReader {
 public:
  // Rows row_of(0) .. row_of(m - 1).
  template <typename RowOf>
  const std::vector<SparseRow>& read(const QueryRows& X, std::int64_t m, RowOf&& row_of) {
    rows_.clear();
    if (X.indptr != nullptr) {
      for (std::int64_t i = 0; i < m; ++i) {
        const std::int64_t first = X.indptr[row_of(i)], last = X.indptr[row_of(i) + 1];
        rows_.push_back({X.indices + first, X.data + first, last - first});
      }
      return rows_;
    }
    start_.assign(1, 0);
    for (std::int64_t i = 0; i < m; ++i) {
      const auto begin = static_cast<std::size_t>(start_.back());
      const float* x = X.data + row_of(i) * X.n_features;
      if (index_.size() < begin + static_cast<std::size_t>(X.n_features)) {
        index_.resize(2 * begin + static_cast<std::size_t>(X.n_features));
        value_.resize(index_.size());
      }
      std::size_t n = begin;
      for (std::int64_t j = 0; j < X.n_features; ++j) {
        index_[n] = static_cast<std::int32_t>(j);
        value_[n] = x[j];
        n += x[j] != 0.0f;
      }
      start_.push_back(static_cast<std::int64_t>(n));
    }
    for (std::size_t i = 0; i + 1 < start_.size(); ++i)
      rows_.push_back({index_.data() + start_[i], value_.data() + start_[i], start_[i + 1] - start_[i]});
    return rows_;
  }

 private:
  std::vector<SparseRow> rows_;
  std::vector<std::int64_t> start_;
  std::vector<std::int32_t> index_;
  std::vector<float> value_;
};

}  // namespace metarank
