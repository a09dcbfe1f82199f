// Sparse means of the labels' points, kept ready for products with row after row.
#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "arrays.h"
#include "distances.h"
#include "elementary.h"
#include "scored_lists.h"
#include "scratch_pool.h"
#include "sparse_rows.h"

namespace metarank {

// The points of labels: rows of X by label, ascending.
struct LabelPoints {
  CsrView X;
  Indptr label_indptr;
  Ids label_rows;
};

class LabelMeanIndex {
 public:
  template <typename Sum>
  class Products;
  template <typename Sum>
  using Lease = typename ScratchPool<Products<Sum>>::Lease;

  // Means as canonical CSR (labels, features), their squared lengths, and which labels have a point at all: one
  // without is as far away as a point of max_sq_norm that shares nothing with x. Of labels whose mean is empty it is
  // made of their points each time, where these are given. Arrays stay where they are: they must outlive the index.
  LabelMeanIndex(const CsrView& means, In1<double> sq_norm, In1<uint8_t> known, double max_sq_norm,
                 const std::optional<LabelPoints>& points = {});

  int64_t n_features() const { return n_features_; }
  int64_t n_labels() const { return means_.n_rows; }

  // Says that the products of so many pairs are about to be asked for, or of some rows with all labels.
  void announce(int64_t n_pairs) const;
  void announce_all() const;
  // One worker's scratch.
  template <typename Sum>
  Lease<Sum> take() const;

 private:
  struct Pools;

  int64_t n_features_;
  SparseRows means_;
  In1<double> sq_norm_;
  In1<uint8_t> known_;
  double max_sq_norm_;
  std::optional<SparseRows> points_;
  Indptr label_indptr_;
  Ids label_rows_;
  std::vector<double> one_over_length_;  // of the means; 0 where that is 0
  std::shared_ptr<Pools> pools_;
  mutable std::mutex mutex_;
  mutable int64_t announced_ = 0;
  mutable std::unique_ptr<const Postings> owned_;
  mutable std::atomic<const Postings*> postings_{nullptr};
};

// Scratch of one worker: one row at a time, and what it shares with the means of some labels.
//
// Shared features are added ascending whichever way is taken: the same bits. Products of rows and means of at
// most unit length may be summed in float, which takes half the time.
template <typename Sum>
class LabelMeanIndex::Products {
 public:
  explicit Products(const LabelMeanIndex& index) : index_(index), spread_(index.n_features_, Sum(0)) {}

  // The row whose products with these labels are asked for next; or with all, once pairs enough were announced.
  void open(const SparseRow& x, const int32_t* labels, int64_t n_labels);
  void open_all(const SparseRow& x);

  Sum product(int32_t label) const { return sums_[label]; }
  double squared_l2(int32_t label) const {
    if (!index_.known_(label)) return far_key(kL2, sq_x_, 0.0, index_.max_sq_norm_, 0.0);
    return std::max(0.0, sq_x_ + index_.sq_norm_(label) - 2.0 * product(label));
  }
  double cosine(int32_t label) const {
    return index_.known_(label) ? cosine_distance(product(label), sq_x_, index_.sq_norm_(label)) : 1.0;
  }
  // The cosine distance but for rounding, without a root and a division.
  double quick_cosine(int32_t label) const {
    return std::max(0.0, 1.0 - product(label) * (one_over_length_ * index_.one_over_length_[label]));
  }

 private:
  void take_row(const SparseRow& x);
  void add_postings();
  void add_labels(const int32_t* labels, int64_t n_labels);
  Sum product_of_points(int32_t label);

  const LabelMeanIndex& index_;
  const Postings* postings_ = nullptr;
  SparseRow x_{nullptr, nullptr, 0};
  double sq_x_ = 0.0, one_over_length_ = 0.0;
  std::vector<Sum> spread_;  // x over all features, zeros between rows
  std::vector<Sum> sums_;    // products, by label; those not asked for may be of another row
  std::vector<double> of_points_;  // sums of a label's points in the features of x, zeros between labels
};

// log P_tail of eq. 5 and 7 (Jain et al. 2016): -log(1 + exp(gamma / 2 |x - mean|^2)), for means scaled to unit
// length |x - mean|^2 being twice the cosine distance.
struct TailProbability {
  double gamma;
  bool unit_means;

  double log_of(const LabelMeanIndex::Products<float>& x, int32_t label) const {
    constexpr double kLong = 20.0;  // from here on the sum is z, to ten digits
    const double z = gamma / 2 * squared_distance(x, label);
    return z > kLong ? -z : -elementary::softplus(z);
  }
  double squared_distance(const LabelMeanIndex::Products<float>& x, int32_t label) const {
    return unit_means ? 2.0 * x.quick_cosine(label) : x.squared_l2(label);
  }
};

// Two rows: L2, cosine.
Array2<float> distances(const LabelMeanIndex& index, const CsrView& X, Indptr pair_indptr, Ids pair_labels,
                        int n_threads);

Array1<float> tail_log_probability(const LabelMeanIndex& index, const CsrView& X, Indptr pair_indptr, Ids pair_labels,
                                   double gamma, bool unit_means, int n_threads);

// (indptr, labels, log P_tail) of the k labels of each row with the nearest means among those that share something with
// it (a product above 0), labels ascending; ties go to the smaller label.
LabelLists nearest_means(const LabelMeanIndex& index, const CsrView& X, int64_t k, double gamma, bool unit_means,
                         int n_threads);

}  // namespace metarank
