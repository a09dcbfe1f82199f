// An exact inverted index over sparse rows: for each feature the rows that hold it.
//
// One pass over the postings of a query's features gives, for every row y at once, what the query x shares with it; the
// distances follow from that and the norms, so rows that share no feature have their exact distance as well:
//   |x - y|^2   = |x|^2 + |y|^2 - 2 dot
//   |x - y|_1   = |x|_1 + |y|_1 + sum over shared features (|x - y| - |x| - |y|)
// All sums are in double, features ascending: a row identical to the query has distance 0 exactly, and no sum depends on
// the batch, nor on whether it was had by postings or read off the row.
#pragma once

#include <limits>
#include <memory>
#include <mutex>
#include <vector>

#include "scratch_pool.h"
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

// Bounds of a query's cosines with all rows, without the features that are stored as columns of all rows. These make
// most postings, and little of a cosine where features are weighed by rarity: at most the product of the shares that
// they have of the lengths of both rows (Cauchy-Schwarz).
struct CosineBounds {
  std::vector<float> of_row, of_block;  // the greatest of kBlock rows
};

// A query laid out over all features.
struct SpreadRow {
  std::vector<float> value;  // zeros between queries
};

class InvertedIndex {
 public:
  static constexpr int64_t kBlock = 32;  // rows that are passed over at a glance
  static constexpr int64_t kAny = std::numeric_limits<int64_t>::max();

  // The rows stay where they are: they must outlive the index.
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
  // known, and are not computed again. None where they are not known and cost more than comparing `n_asked` rows.
  std::unique_ptr<Overlaps> overlaps(const SparseRow& x, bool with_l1, int64_t n_asked) const;
  void give_back(std::unique_ptr<Overlaps> sums) const;

  // A query, to be compared with some rows.
  ScratchPool<SpreadRow>::Lease spread(const SparseRow& x) const;
  void clear(const SparseRow& x, SpreadRow& spread) const;
  void add_row(const SpreadRow& spread, int32_t y, double& dot, double* l1) const;
  void prefetch(int32_t y) const {
    __builtin_prefetch(rows_.indices + rows_.indptr[y]);
    __builtin_prefetch(rows_.data + rows_.indptr[y]);
  }

  // Whether rows are so many, and of such lengths, that bounds of cosines pay and hold.
  bool has_bounds() const { return has_bounds_; }
  ScratchPool<CosineBounds>::Lease cosine_bounds(const SparseRow& x) const;

 private:
  void add(const SparseRow& x, Overlaps& sums) const;
  void clear(Overlaps& sums) const;
  void prepare_bounds();
  // Whether to add the postings of x costs more than to read so many rows.
  bool is_dearer(const SparseRow& x, int64_t n_asked) const;

  SparseRows rows_;
  Postings postings_;
  std::vector<double> sq_norm_, l1_norm_, inverse_norm_;
  double max_sq_norm_ = 0.0, max_l1_norm_ = 0.0, mean_size_ = 0.0;
  bool has_bounds_ = false;
  std::vector<float> inverse_;  // norms
  std::vector<uint8_t> late_;   // the share that columns have of the length of each row, rounded up
  mutable ScratchPool<SpreadRow> spread_;
  mutable ScratchPool<CosineBounds> bounds_;
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<Overlaps>> kept_;  // the last given back at the end
};

}  // namespace metarank
