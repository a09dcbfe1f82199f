// An exact inverted index over sparse rows: for each feature the rows that hold it.
//
// One pass over the postings of a query's features gives, for every row y at
// once, what the query x shares with it; the distances follow from that and the
// norms, so rows that share no feature have their exact distance as well:
//   |x - y|^2   = |x|^2 + |y|^2 - 2 dot
//   |x - y|_1   = |x|_1 + |y|_1 + sum over shared features (|x - y| - |x| - |y|)
// All sums are in double, features ascending: a row identical to the query has
// distance 0 exactly, and no sum depends on the batch.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "scratch_pool.h"

namespace metarank {

struct SparseRow {
  const std::int32_t* index;  // ascending
  const float* value;
  std::int64_t size;

  double sq_norm() const;
  double l1_norm() const;
};

// What a query shares with each row: their dot product and, where asked for, the sum of the L1 distance above.
struct Overlaps {
  std::vector<double> dot, l1;
};

class InvertedIndex {
 public:
  // Throws std::invalid_argument unless the arrays are a CSR matrix with ascending columns below n_features.
  InvertedIndex(std::int64_t n_rows, std::int64_t n_features, const std::int64_t* indptr, std::int64_t nnz,
                const std::int32_t* indices, const float* data);

  std::int64_t n_rows() const { return static_cast<std::int64_t>(sq_norm_.size()); }
  std::int64_t n_features() const { return static_cast<std::int64_t>(indptr_.size()) - 1; }
  const double* sq_norm() const { return sq_norm_.data(); }
  const double* l1_norm() const { return l1_norm_.data(); }
  double max_sq_norm() const { return max_sq_norm_; }
  double max_l1_norm() const { return max_l1_norm_; }

  double inverse_norm(std::int32_t row) const { return inverse_norm_[static_cast<std::size_t>(row)]; }  // 0 of zero rows

  // Memory for the overlaps of one query with all rows, all zeros.
  std::unique_ptr<Overlaps> take() const { return pool_.take([] { return std::make_unique<Overlaps>(); }); }
  void give_back(std::unique_ptr<Overlaps> sums) const { pool_.give_back(std::move(sums)); }

  // Writes the query's overlaps; `with_l1`: not the dot products alone.
  void accumulate(const SparseRow& x, bool with_l1, Overlaps& sums) const;
  // Sets back to zero what `accumulate` wrote.
  void clear(const SparseRow& x, bool with_l1, Overlaps& sums) const;

 private:
  std::vector<std::int64_t> indptr_;
  std::vector<std::int32_t> rows_;  // ascending within a feature
  std::vector<float> values_;
  std::vector<double> sq_norm_, l1_norm_, inverse_norm_;
  double max_sq_norm_ = 0.0, max_l1_norm_ = 0.0;
  mutable ScratchPool<Overlaps> pool_;
};

// Throws std::invalid_argument unless the arrays are a CSR matrix with ascending columns below n_features.
void check_csr(std::int64_t n_rows, std::int64_t n_features, const std::int64_t* indptr, std::int64_t nnz,
               const std::int32_t* indices);

}  // namespace metarank
