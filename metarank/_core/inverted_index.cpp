#include "inverted_index.h"

#include <algorithm>
#include <cmath>

#include "arrays.h"
#include "simd.h"

namespace metarank {

namespace {

// A feature that at least one in so many rows holds is stored as a column of all rows.
constexpr std::int64_t kRowsPerPosting = 4;

METARANK_KERNEL void add_column(double v, const float* column, std::int64_t n, double* dot) {
  for (std::int64_t i = 0; i < n; ++i) dot[i] += v * column[i];
}

}  // namespace

double SparseRow::sq_norm() const {
  double s = 0.0;
  for (std::int64_t j = 0; j < size; ++j) s += static_cast<double>(value[j]) * value[j];
  return s;
}

double SparseRow::l1_norm() const {
  double s = 0.0;
  for (std::int64_t j = 0; j < size; ++j) s += std::fabs(static_cast<double>(value[j]));
  return s;
}

void check_csr(std::int64_t n_rows, std::int64_t n_features, const std::int64_t* indptr, std::int64_t nnz,
               const std::int32_t* indices) {
  require(indptr[0] == 0 && indptr[n_rows] == nnz, "X.indptr must start at 0 and end at the number of entries");
  for (std::int64_t i = 0; i < n_rows; ++i) {
    require(indptr[i] <= indptr[i + 1] && indptr[i + 1] <= nnz, "X.indptr must not decrease");
    std::int32_t previous = -1;
    for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
      require(indices[p] > previous && indices[p] < n_features,
              "X.indices must be ascending, distinct and below the number of features");
      previous = indices[p];
    }
  }
}

InvertedIndex::InvertedIndex(std::int64_t n_rows, std::int64_t n_features, const std::int64_t* indptr,
                             std::int64_t nnz, const std::int32_t* indices, const float* data)
    : indptr_(static_cast<std::size_t>(n_features) + 1, 0),
      rows_(static_cast<std::size_t>(nnz)),
      values_(static_cast<std::size_t>(nnz)),
      column_of_(static_cast<std::size_t>(n_features), -1),
      sq_norm_(static_cast<std::size_t>(n_rows)),
      l1_norm_(static_cast<std::size_t>(n_rows)),
      inverse_norm_(static_cast<std::size_t>(n_rows)) {
  check_csr(n_rows, n_features, indptr, nnz, indices);
  for (std::int64_t p = 0; p < nnz; ++p) ++indptr_[static_cast<std::size_t>(indices[p]) + 1];
  for (std::size_t f = 0; f < static_cast<std::size_t>(n_features); ++f) indptr_[f + 1] += indptr_[f];
  std::vector<std::int64_t> next(indptr_.begin(), indptr_.end() - 1);
  for (std::int64_t i = 0; i < n_rows; ++i) {
    for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(indices[p])]++);
      rows_[at] = static_cast<std::int32_t>(i);
      values_[at] = data[p];
    }
    const SparseRow row{indices + indptr[i], data + indptr[i], indptr[i + 1] - indptr[i]};
    const auto r = static_cast<std::size_t>(i);
    max_sq_norm_ = std::max(max_sq_norm_, sq_norm_[r] = row.sq_norm());
    max_l1_norm_ = std::max(max_l1_norm_, l1_norm_[r] = row.l1_norm());
    inverse_norm_[r] = sq_norm_[r] > 0.0 ? 1.0 / std::sqrt(sq_norm_[r]) : 0.0;
  }
  for (std::size_t f = 0; f < static_cast<std::size_t>(n_features); ++f) {
    const auto begin = static_cast<std::size_t>(indptr_[f]), end = static_cast<std::size_t>(indptr_[f + 1]);
    if (begin == end || static_cast<std::int64_t>(end - begin) * kRowsPerPosting < n_rows) continue;
    column_of_[f] = static_cast<std::int32_t>(columns_.size() / sq_norm_.size());
    columns_.resize(columns_.size() + sq_norm_.size());
    float* column = columns_.data() + columns_.size() - sq_norm_.size();
    for (std::size_t p = begin; p < end; ++p) column[rows_[p]] = values_[p];
  }
}

std::unique_ptr<Overlaps> InvertedIndex::overlaps(const SparseRow& x, bool with_l1) const {
  std::unique_ptr<Overlaps> sums;
  {
    const std::lock_guard lock(mutex_);
    for (auto& kept : kept_)
      if (kept->with_l1 == with_l1 && std::equal(kept->index.begin(), kept->index.end(), x.index, x.index + x.size) &&
          std::equal(kept->value.begin(), kept->value.end(), x.value, x.value + x.size)) {
        sums = std::move(kept);
        std::erase(kept_, nullptr);
        return sums;
      }
    if (!kept_.empty()) {
      sums = std::move(kept_.front());
      kept_.erase(kept_.begin());
    }
  }
  if (sums == nullptr) sums = std::make_unique<Overlaps>();
  clear(*sums);
  sums->index.assign(x.index, x.index + x.size);
  sums->value.assign(x.value, x.value + x.size);
  sums->with_l1 = with_l1;
  add(x, with_l1, *sums);
  return sums;
}

void InvertedIndex::give_back(std::unique_ptr<Overlaps> sums) const {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(sums));
}

void InvertedIndex::add(const SparseRow& x, bool with_l1, Overlaps& sums) const {
  sums.dot.resize(sq_norm_.size());
  if (with_l1) sums.l1.resize(sq_norm_.size());
  double *dot = sums.dot.data(), *l1 = sums.l1.data();
  for (std::int64_t j = 0; j < x.size; ++j) {
    const auto f = static_cast<std::size_t>(x.index[j]);
    const double v = x.value[j];
    const auto begin = static_cast<std::size_t>(indptr_[f]), end = static_cast<std::size_t>(indptr_[f + 1]);
    // Products with a zero do not change a sum: the same bits either way.
    if (const std::int64_t column = column_of_[f]; column >= 0)
      by_level<add_column>(v, columns_.data() + column * n_rows(), n_rows(), dot);
    else
      for (std::size_t p = begin; p < end; ++p) dot[rows_[p]] += v * values_[p];
    if (!with_l1) continue;
    const double abs_v = std::fabs(v);
    for (std::size_t p = begin; p < end; ++p) {
      const double w = values_[p];
      l1[rows_[p]] += std::fabs(v - w) - abs_v - std::fabs(w);
    }
  }
}

// Sets back to zero what the last query wrote.
void InvertedIndex::clear(Overlaps& sums) const {
  std::int64_t touched = 0;
  for (const std::int32_t f : sums.index)
    touched += indptr_[static_cast<std::size_t>(f) + 1] - indptr_[static_cast<std::size_t>(f)];
  if (touched > n_rows() / 4) {  // a sweep costs less than scattered writes
    std::fill(sums.dot.begin(), sums.dot.end(), 0.0);
    std::fill(sums.l1.begin(), sums.l1.end(), 0.0);
    return;
  }
  for (const std::int32_t f : sums.index)
    for (auto p = static_cast<std::size_t>(indptr_[static_cast<std::size_t>(f)]),
              end = static_cast<std::size_t>(indptr_[static_cast<std::size_t>(f) + 1]);
         p < end; ++p) {
      sums.dot[static_cast<std::size_t>(rows_[p])] = 0.0;
      if (sums.with_l1) sums.l1[static_cast<std::size_t>(rows_[p])] = 0.0;
    }
}

}  // namespace metarank
