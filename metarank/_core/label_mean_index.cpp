#include "label_mean_index.h"

#include <bit>
#include <type_traits>

#include "sparse_rows.h"

namespace metarank {

namespace {

constexpr int64_t kPairsWorthPostings = 4;  // a label, on average
constexpr int64_t kLabelsPerPosting = 8;    // a feature that one label in so many has is stored for all
constexpr int64_t kAtATime = 8;             // labels added in the time of one posting, where all are stored
constexpr int64_t kBlock = 16;

}  // namespace

struct LabelMeanIndex::Pools {
  ScratchPool<Products<float>> of_float;
  ScratchPool<Products<double>> of_double;
};

LabelMeanIndex::LabelMeanIndex(const CsrView& means, In1<double> sq_norm, In1<uint8_t> known, double max_sq_norm,
                               const std::optional<LabelPoints>& points)
    : n_features_(means.n_columns),
      means_(require_canonical(means, "means")),
      sq_norm_(sq_norm),
      known_(known),
      max_sq_norm_(max_sq_norm),
      one_over_length_(sq_norm.shape(0)),
      pools_(std::make_shared<Pools>()) {
  const auto n = static_cast<size_t>(means_.n_rows);
  require(known.shape(0) == n && sq_norm.shape(0) == n, "means must have one row a label");
  if (points) {
    label_indptr_ = points->label_indptr;
    label_rows_ = points->label_rows;
    require(points->X.n_columns == n_features_, "points must have as many features as means");
    points_ = require_canonical(points->X, "points");
    require(label_indptr_.shape(0) == n + 1, "label_indptr must have one entry a label and one more");
    require_indptr(label_indptr_, static_cast<int64_t>(label_rows_.shape(0)), "label_indptr");
    require_in_range(label_rows_, points_->n_rows, "label_rows");
  }
  for (size_t l = 0; l < n; ++l) one_over_length_[l] = sq_norm(l) > 0 ? 1.0 / std::sqrt(sq_norm(l)) : 0.0;
}

// Postings take the memory of the means, and some time: not for a few pairs only.
void LabelMeanIndex::announce(int64_t n_pairs) const {
  if (points_ || postings_.load(std::memory_order_acquire) != nullptr) return;
  const std::lock_guard lock(mutex_);
  announced_ += n_pairs;
  if (owned_ || announced_ < kPairsWorthPostings * n_labels()) return;
  owned_ = std::make_unique<Postings>(means_, n_features_, kLabelsPerPosting);
  postings_.store(owned_.get(), std::memory_order_release);
}

void LabelMeanIndex::announce_all() const { announce(kPairsWorthPostings * n_labels()); }

template <typename Sum>
LabelMeanIndex::Lease<Sum> LabelMeanIndex::take() const {
  if constexpr (std::is_same_v<Sum, float>)
    return pools_->of_float.take(*this);
  else
    return pools_->of_double.take(*this);
}

template <typename Sum>
void LabelMeanIndex::Products<Sum>::take_row(const SparseRow& x) {
  x_ = x;
  sq_x_ = x.sq_norm();
  one_over_length_ = sq_x_ > 0 ? 1.0 / std::sqrt(sq_x_) : 0.0;
  sums_.resize(index_.n_labels());
  postings_ = index_.postings_.load(std::memory_order_acquire);
}

template <typename Sum>
void LabelMeanIndex::Products<Sum>::open_all(const SparseRow& x) {
  take_row(x);
  require(postings_ != nullptr, "products with all labels need their means");
  add_postings();
}

template <typename Sum>
void LabelMeanIndex::Products<Sum>::open(const SparseRow& x, const int32_t* labels, int64_t n) {
  take_row(x);
  int64_t of_postings = index_.n_labels() / kAtATime, of_labels = 0;  // what either way costs
  for (int64_t j = 0; j < x.size && postings_ != nullptr; ++j)
    of_postings += postings_->is_full(x.index[j]) ? index_.n_labels() / kAtATime : postings_->size(x.index[j]);
  for (int64_t i = 0; i < n; ++i) of_labels += index_.means_.row(labels[i]).size;
  if (postings_ != nullptr && of_postings < of_labels)
    add_postings();
  else
    add_labels(labels, n);
}

template <typename Sum>
void LabelMeanIndex::Products<Sum>::add_postings() {
  std::fill(sums_.begin(), sums_.end(), Sum(0));
  for (int64_t j = 0; j < x_.size; ++j) postings_->add<Sum>(x_.index[j], x_.value[j], index_.n_labels(), sums_.data());
}

// Label by label: the mean is run down or, where that is shorter, each feature of x is looked up in it. Products of
// zero do not change a sum.
template <typename Sum>
void LabelMeanIndex::Products<Sum>::add_labels(const int32_t* labels, int64_t n) {
  for (int64_t j = 0; j < x_.size; ++j) spread_[x_.index[j]] = x_.value[j];
  for (int64_t i = 0; i < n; ++i) {
    const SparseRow mean = index_.means_.row(labels[i]);
    Sum sum = 0;
    if (mean.size == 0 && index_.points_) {
      sum = product_of_points(labels[i]);
    } else if (x_.size * static_cast<int64_t>(std::bit_width(static_cast<uint64_t>(mean.size))) < mean.size) {
      const int32_t *at = mean.index, *const end = mean.index + mean.size;
      for (int64_t j = 0; j < x_.size && at != end; ++j) {
        at = std::lower_bound(at, end, x_.index[j]);
        if (at != end && *at == x_.index[j]) sum += static_cast<Sum>(x_.value[j]) * mean.value[at - mean.index];
      }
    } else {
      for (int64_t p = 0; p < mean.size; ++p) sum += spread_[mean.index[p]] * mean.value[p];
    }
    sums_[labels[i]] = sum;
  }
  for (int64_t j = 0; j < x_.size; ++j) spread_[x_.index[j]] = Sum(0);
}

// The mean's terms in the features of x, as they are stored of other labels: sums of points in double, rounded once
// divided.
template <typename Sum>
Sum LabelMeanIndex::Products<Sum>::product_of_points(int32_t label) {
  of_points_.resize(spread_.size());
  const int64_t begin = index_.label_indptr_(label), end = index_.label_indptr_(label + 1);
  if (begin == end) return Sum(0);
  for (int64_t r = begin; r < end; ++r) {
    const SparseRow point = index_.points_->row(index_.label_rows_(r));
    for (int64_t p = 0; p < point.size; ++p)
      if (spread_[point.index[p]] != Sum(0)) of_points_[point.index[p]] += point.value[p];
  }
  Sum sum = 0;
  for (int64_t j = 0; j < x_.size; ++j) {
    double& of_feature = of_points_[x_.index[j]];
    sum += static_cast<Sum>(x_.value[j]) * static_cast<float>(of_feature / static_cast<double>(end - begin));
    of_feature = 0.0;
  }
  return sum;
}

// For instance_trees.cpp.
template class LabelMeanIndex::Products<float>;
template LabelMeanIndex::Lease<float> LabelMeanIndex::take<float>() const;

namespace {

// of(products, pair, label) of each pair.
template <typename Sum, typename Of>
void for_each_pair(const LabelMeanIndex& index, const CsrView& rows, const Indptr& indptr, const Ids& labels,
                   int n_threads, const Of& of) {
  const SparseRows X = require_rows(rows, index.n_features());
  require_pairs(indptr, labels, X.n_rows, index.n_labels());
  index.announce(labels.shape(0));
  parallel_for(X.n_rows, n_threads, kBlock, [&](int64_t begin, int64_t end, int) {
    const auto products = index.take<Sum>();
    for (int64_t i = begin; i < end; ++i) {
      products->open(X.row(i), labels.data() + indptr(i), indptr(i + 1) - indptr(i));
      for (int64_t p = indptr(i); p < indptr(i + 1); ++p) of(*products, p, labels(p));
    }
  });
}

}  // namespace

Array2<float> distances(const LabelMeanIndex& index, const CsrView& X, Indptr indptr, Ids labels, int n_threads) {
  const size_t m = labels.shape(0);
  std::vector<float> out(2 * m);
  for_each_pair<double>(index, X, indptr, labels, n_threads, [&](const auto& x, int64_t p, int32_t label) {
    out[p] = distance_of(kL2, x.squared_l2(label));
    out[m + p] = distance_of(kCosine, x.cosine(label));
  });
  return to_array(std::move(out), 2, m);
}

Array1<float> tail_log_probability(const LabelMeanIndex& index, const CsrView& X, Indptr indptr, Ids labels,
                                   double gamma, bool unit_means, int n_threads) {
  const TailProbability tail{gamma, unit_means};
  std::vector<float> out(labels.shape(0));
  for_each_pair<float>(index, X, indptr, labels, n_threads, [&](const auto& x, int64_t p, int32_t label) {
    out[p] = static_cast<float>(tail.log_of(x, label));
  });
  return to_array(std::move(out));
}

LabelLists nearest_means(const LabelMeanIndex& index, const CsrView& rows, int64_t k, double gamma, bool unit_means,
                         int n_threads) {
  require(k >= 1, "k must be positive");
  const SparseRows X = require_rows(rows, index.n_features());
  const TailProbability tail{gamma, unit_means};
  index.announce_all();
  return ListsOfRows::of(X.n_rows, n_threads, kBlock, [&](int64_t begin, int64_t end, ListsOfRows& lists) {
    const auto products = index.take<float>();
    std::vector<Scored> list;
    for (int64_t i = begin; i < end; ++i) {
      products->open_all(X.row(i));
      list.clear();
      for (int32_t l = 0; l < index.n_labels(); ++l)
        if (products->product(l) > 0.0f) list.push_back({-tail.squared_distance(*products, l), l});
      keep_best(list, k);
      for (const Scored& s : list) lists.add(s.label, static_cast<float>(tail.log_of(*products, s.label)));
      lists.end_row();
    }
  });
}

}  // namespace metarank
