#include "sparse_rows.h"

#include "simd.h"

namespace metarank {

namespace {

SparseRows rows_of(const CsrView& X, const std::string& name) {
  require(X.n_columns >= 0, name + " must not have a negative number of columns");
  require(X.indices.shape(0) == X.data.shape(0), name + ".indices and " + name + ".data must have the same length");
  require_indptr(X.indptr, static_cast<int64_t>(X.indices.shape(0)), name + ".indptr");
  return {X.indptr.data(), X.indices.data(), X.data.data(), static_cast<int64_t>(X.indptr.shape(0)) - 1};
}

}  // namespace

SparseRows require_csr(const CsrView& X, const std::string& name) {
  require_in_range(X.indices, X.n_columns, name + ".indices");
  return rows_of(X, name);
}

SparseRows require_canonical(const CsrView& view, const std::string& name) {
  const SparseRows X = rows_of(view, name);
  bool ascend = true;
  for (int64_t i = 0; i < X.n_rows; ++i) {
    int32_t previous = -1;
    for (int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
      ascend &= X.indices[p] > previous && X.indices[p] < view.n_columns;
      previous = X.indices[p];
    }
  }
  require(ascend, name + ".indices must be ascending, distinct and below the number of features");
  return X;
}

Postings::Postings(const SparseRows& X, int64_t n_features, int64_t rows_per_posting)
    : start(static_cast<size_t>(n_features) + 1, 0),
      row(static_cast<size_t>(X.indptr[X.n_rows])),
      value(row.size()),
      n_rows_(X.n_rows),
      column_(static_cast<size_t>(n_features), -1) {
  for (size_t p = 0; p < row.size(); ++p) ++start[X.indices[p] + 1];
  int64_t size = 0;
  for (size_t f = 0; f < column_.size(); ++f) {
    if (start[f + 1] > 0 && start[f + 1] * rows_per_posting >= n_rows_) {
      column_[f] = size;
      size += n_rows_;
    }
    start[f + 1] += start[f];
  }
  columns_.assign(size, 0.0f);
  std::vector<int64_t> next(start.begin(), start.end() - 1);
  for (int64_t i = 0; i < n_rows_; ++i)
    for (int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
      const int64_t f = X.indices[p], at = next[f]++;
      row[at] = i;
      value[at] = X.data[p];
      if (column_[f] >= 0) columns_[column_[f] + i] = X.data[p];
    }
}

template <typename Sum>
void Postings::add(int64_t feature, Sum v, int64_t n, Sum* sum) const {
  if (is_full(feature)) return by_level<add_scaled<Sum, float>>(sum, v, columns_.data() + column_[feature], n);
  const int32_t* const rows = row.data();
  int64_t end = start[feature + 1];
  if (n < n_rows_) end = std::lower_bound(rows + start[feature], rows + end, n) - rows;
  for (int64_t q = start[feature]; q < end; ++q) sum[rows[q]] += v * value[q];
}

template void Postings::add(int64_t, double, int64_t, double*) const;
template void Postings::add(int64_t, float, int64_t, float*) const;

}  // namespace metarank
