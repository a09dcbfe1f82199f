#include "inverted_index.h"

#include <algorithm>
#include <cmath>

namespace metarank {

// A feature that at least one in four rows holds is stored as a column of all rows.
InvertedIndex::InvertedIndex(const CsrView& rows) : postings_(require_canonical(rows), rows.n_columns, 4) {
  for (size_t i = 0; i + 1 < rows.indptr.shape(0); ++i) {
    const int64_t first = rows.indptr(i);
    const SparseRow row{rows.indices.data() + first, rows.data.data() + first, rows.indptr(i + 1) - first};
    sq_norm_.push_back(row.sq_norm());
    l1_norm_.push_back(row.l1_norm());
    inverse_norm_.push_back(sq_norm_[i] > 0.0 ? 1.0 / std::sqrt(sq_norm_[i]) : 0.0);
    max_sq_norm_ = std::max(max_sq_norm_, sq_norm_[i]);
    max_l1_norm_ = std::max(max_l1_norm_, l1_norm_[i]);
  }
}

std::unique_ptr<Overlaps> InvertedIndex::overlaps(const SparseRow& x, bool with_l1) const {
  std::unique_ptr<Overlaps> sums;
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) {
      return kept->with_l1 == with_l1 &&
             std::equal(kept->index.begin(), kept->index.end(), x.index, x.index + x.size) &&
             std::equal(kept->value.begin(), kept->value.end(), x.value, x.value + x.size);
    });
    const bool is_known = known != kept_.end();
    if (!kept_.empty()) {
      const auto taken = is_known ? known : kept_.begin();
      sums = std::move(*taken);
      kept_.erase(taken);
    }
    if (is_known) return sums;
  }
  if (sums == nullptr) sums = std::make_unique<Overlaps>();
  clear(*sums);
  sums->index.assign(x.index, x.index + x.size);
  sums->value.assign(x.value, x.value + x.size);
  sums->with_l1 = with_l1;
  add(x, *sums);
  return sums;
}

void InvertedIndex::give_back(std::unique_ptr<Overlaps> sums) const {
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(sums));
}

void InvertedIndex::add(const SparseRow& x, Overlaps& sums) const {
  sums.dot.resize(sq_norm_.size());
  if (sums.with_l1) sums.l1.resize(sq_norm_.size());
  for (int64_t j = 0; j < x.size; ++j) {
    const int32_t f = x.index[j];
    const double v = x.value[j], abs_v = std::fabs(v);
    postings_.add(f, v, n_rows(), sums.dot.data());
    for (int64_t p = postings_.start[f]; sums.with_l1 && p < postings_.start[f + 1]; ++p) {
      const double w = postings_.value[p];
      sums.l1[postings_.row[p]] += std::fabs(v - w) - abs_v - std::fabs(w);
    }
  }
}

// Sets back to zero what the last query wrote.
void InvertedIndex::clear(Overlaps& sums) const {
  int64_t touched = 0;
  for (const int32_t f : sums.index) touched += postings_.size(f);
  if (touched > n_rows() / 4) {  // a sweep costs less than scattered writes
    std::fill(sums.dot.begin(), sums.dot.end(), 0.0);
    std::fill(sums.l1.begin(), sums.l1.end(), 0.0);
    return;
  }
  for (const int32_t f : sums.index)
    for (int64_t p = postings_.start[f]; p < postings_.start[f + 1]; ++p) {
      sums.dot[postings_.row[p]] = 0.0;
      if (sums.with_l1) sums.l1[postings_.row[p]] = 0.0;
    }
}

}  // namespace metarank
