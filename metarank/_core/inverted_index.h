// An exact inverted index over sparse rows: for each feature the rows that hold it.
//
// One pass over the postings of a query's features gives, for every row y at once, what the query x shares with it; the
// distances follow from that and the norms, so rows that share no feature have their exact distance as well:
//   |x - y|^2   = |x|^2 + |y|^2 - 2 dot
//   |x - y|_1   = |x|_1 + |y|_1 + sum over shared features (|x - y| - |x| - |y|)
// All sums are in double, features ascending: a row identical to the query has distance 0 exactly, and no sum depends on
// the batch.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "sparse_rows.h"

namespace metarank {

// What a query shares with each row: their dot product and, where asked for, the sum of the L1 distance above.
// They remember the query, as several questions are asked about the same one.
struct Overlaps {
  std::vector<double> dot, l1;
  std::vector<int32_t> index;
  std::vector<float> value;
  bool with_l1 = false;
};

class InvertedIndex {
 public:
  explicit InvertedIndex(const CsrView& rows);

  int64_t n_rows() const { return static_cast<int64_t>(sq_norm_.size()); }
  int64_t n_features() const { return static_cast<int64_t>(postings_.start.size()) - 1; }
  const double* sq_norm() const { return sq_norm_.data(); }
  const double* l1_norm() const { return l1_norm_.data(); }
  const double* inverse_norms() const { return inverse_norm_.data(); }  // 0 for a row of zeros
  double max_sq_norm() const { return max_sq_norm_; }
  double max_l1_norm() const { return max_l1_norm_; }

  SparseRows require_queries(const CsrView& X) const {
    return require_canonical({X.indptr, X.indices, X.data, n_features()});
  }
  // The overlaps of a query with all rows; `with_l1`: not the dot products alone. Of the last queries they are
  // known, and are not computed again.
  std::unique_ptr<Overlaps> overlaps(const SparseRow& x, bool with_l1) const;
  void give_back(std::unique_ptr<Overlaps> sums) const;

 private:
  void add(const SparseRow& x, Overlaps& sums) const;
  void clear(Overlaps& sums) const;

  Postings postings_;
  std::vector<double> sq_norm_, l1_norm_, inverse_norm_;
  double max_sq_norm_ = 0.0, max_l1_norm_ = 0.0;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Overlaps>> kept_;  // the last given back at the end
};

}  // namespace metarank
