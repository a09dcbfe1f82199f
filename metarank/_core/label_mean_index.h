// Sparse means of the labels' points, kept ready for products with row after row.
#pragma once

#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <mutex>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "distances.h"
#include "elementary.h"
#include "inverted_index.h"
#include "scratch_pool.h"

namespace metarank {

class LabelMeanIndex {
 public:
  template <typename Sum>
  class Products;

  // Means as canonical CSR (labels, features), their squared lengths, and which labels have a point at all: one
  // without is as far away as a point of max_sq_norm that shares nothing with x. Arrays stay where they are: they must
  // outlive the index.
  LabelMeanIndex(std::int64_t n_features, const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices,
                 const In1<float>& data, const In1<double>& sq_norm, const In1<std::uint8_t>& known,
                 double max_sq_norm);

  std::int64_t n_features() const { return n_features_; }
  std::int64_t n_labels() const { return static_cast<std::int64_t>(known_.shape(0)); }

  // Says that the products of so many pairs are about to be asked for; or of some rows with all labels.
  void announce(std::int64_t n_pairs) const;
  void announce_all() const;
  template <typename Sum>
  std::unique_ptr<Products<Sum>> take() const;
  // For the next caller, where it came with few rows.
  template <typename Sum>
  void give_back(std::unique_ptr<Products<Sum>> scratch, std::int64_t n_rows) const;

 private:
  struct Pools;
  struct Posting {
    std::int32_t label;
    float value;
  };
  // Which of 64 features a mean has, and how many it has before them.
  struct Word {
    std::uint64_t bits = 0;
    std::int64_t before = 0;
  };
  // Of a row's features one that a mean has too: its places in the row and in the mean.
  struct Shared {
    std::int32_t in_row, in_mean;
  };
  // By feature, the labels whose means have it, ascending; of a feature that many means have, the values of all
  // labels, which are added several at a time.
  struct Postings {
    std::vector<std::int64_t> start;
    std::vector<Posting> posting;
    std::vector<std::int32_t> full_row;  // of a feature, or -1
    std::vector<float> full;             // (rows, labels)
    std::vector<std::int64_t> first_word;  // of a label with a long mean, its features in `words`; or -1
    std::vector<Word> words;
  };

  static std::shared_ptr<Pools> new_pools();

  std::int64_t n_features_;
  In1<std::int64_t> indptr_;
  In1<std::int32_t> indices_;
  In1<float> data_;
  In1<double> sq_norm_;
  In1<std::uint8_t> known_;
  double max_sq_norm_;
  std::vector<double> one_over_length_;  // of the means; 0 where that is 0
  std::shared_ptr<Pools> pools_;
  mutable std::mutex mutex_;
  mutable std::int64_t announced_ = 0;
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
  explicit Products(const LabelMeanIndex& index);

  // The row whose products with these labels are asked for next.
  void open(const SparseRow& x, const std::int32_t* labels, std::int64_t n_labels);

  // The row whose products with all labels are asked for next, once pairs enough were announced.
  void open_all(const SparseRow& x);

  Sum product(std::int32_t label) const { return sums_[static_cast<std::size_t>(label)]; }
  double squared_l2(std::int32_t label) const { return squared_l2(label, product(label)); }
  double squared_l2(std::int32_t label, double product) const {
    if (!index_.known_.data()[label]) return far_key(kL2, sq_x_, 0.0, index_.max_sq_norm_, 0.0);
    return std::max(0.0, sq_x_ + index_.sq_norm_.data()[label] - 2.0 * product);
  }
  double cosine(std::int32_t label, double product) const {
    return index_.known_.data()[label] ? cosine_distance(product, sq_x_, index_.sq_norm_.data()[label]) : 1.0;
  }
  // The cosine distance but for rounding, without a root and a division.
  double quick_cosine(std::int32_t label) const {
    const double cosine = product(label) * (one_over_length_ * index_.one_over_length_[static_cast<std::size_t>(label)]);
    return std::max(0.0, 1.0 - cosine);
  }

 private:
  void take_row(const SparseRow& x);
  void add_postings();
  void add_labels(const std::int32_t* labels, std::int64_t n_labels);
  Sum product_of_shared(const Word* words, std::int64_t first);
  Sum look_up(std::int64_t first, std::int64_t last) const;

  const LabelMeanIndex& index_;
  const Postings* postings_ = nullptr;
  SparseRow x_{nullptr, nullptr, 0};
  double sq_x_ = 0.0, one_over_length_ = 0.0;
  std::vector<Sum> spread_;  // x over all features, zeros between rows
  std::vector<Sum> sums_;    // products, by label; those not asked for may be of another row
  std::vector<std::int32_t> run_down_;
  std::vector<Shared> shared_;
};

// log P_tail of eq. 5 and 7 (Jain et al. 2016): -log(1 + exp(gamma / 2 |x - mean|^2)), for means scaled to unit
// length |x - mean|^2 being twice the cosine distance.
struct TailProbability {
  double gamma;
  bool unit_means;

  double log_of(const LabelMeanIndex::Products<float>& x, std::int32_t label) const {
    const double z = gamma / 2 * squared_distance(x, label);
    return z > kLong ? -z : -elementary::softplus(z);
  }

  double squared_distance(const LabelMeanIndex::Products<float>& x, std::int32_t label) const {
    return unit_means ? 2.0 * x.quick_cosine(label) : x.squared_l2(label);
  }

 private:
  static constexpr double kLong = 20.0;  // from here on the sum is z, to ten digits
};

// Two columns: L2, cosine.
Array2<float> distances(const LabelMeanIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                        In1<float> data, In1<std::int64_t> pair_indptr, In1<std::int32_t> pair_labels, int n_threads);

Array1<float> tail_log_probability(const LabelMeanIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                                   In1<float> data, In1<std::int64_t> pair_indptr, In1<std::int32_t> pair_labels,
                                   double gamma, bool unit_means, int n_threads);

// (indptr, labels, log P_tail) of the k labels of each row with the nearest means among those that share something with
// it (a product above 0), labels ascending; ties go to the smaller label.
std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<float>> nearest_means(
    const LabelMeanIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices, In1<float> data, std::int64_t k,
    double gamma, bool unit_means, int n_threads);

}  // namespace metarank
