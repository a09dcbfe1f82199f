#include "label_mean_index.h"

#include <algorithm>
#include <bit>
#include <type_traits>

#include "pairs.h"
#include "query_rows.h"
#include "scored_lists.h"
#include "simd.h"
#include "parallel.h"

namespace metarank {

namespace {

constexpr std::int64_t kPairsWorthPostings = 4;  // a label, on average
constexpr std::int64_t kFullFrom = 8;            // a feature that one label in so many has is stored for all
constexpr std::int64_t kAtATime = 8;             // labels added in the time of one posting, where all are stored
constexpr std::int64_t kRunDown = 4;             // entries of means run down in that time
constexpr std::int64_t kWordsFrom = 16;          // a mean with one feature in so many has them as bits, too
constexpr std::int64_t kBits = 64;
constexpr std::int64_t kBlock = 16;

template <typename Sum>
METARANK_KERNEL void add_scaled(Sum by, const float* values, std::int64_t n, Sum* sums) {
  for (std::int64_t i = 0; i < n; ++i) sums[i] += by * values[i];
}

// The features of a row that a mean has, ascending; `shared` has room for all. Whether it has one cannot be foreseen:
// no branch depends on it.
template <typename Word, typename Shared>
METARANK_KERNEL std::int64_t find_shared(const std::int32_t* index, std::int64_t n, const Word* words,
                                         Shared* shared) {
  std::int64_t found = 0;
  for (std::int64_t j = 0; j < n; ++j) {
    const Word word = words[index[j] / kBits];
    const std::uint64_t bit = std::uint64_t{1} << (index[j] % kBits);
    shared[found] = {static_cast<std::int32_t>(j),
                     static_cast<std::int32_t>(word.before + std::popcount(word.bits & (bit - 1)))};
    found += (word.bits & bit) != 0;
  }
  return found;
}

}  // namespace

struct LabelMeanIndex::Pools {
  ScratchPool<Products<float>> of_float;
  ScratchPool<Products<double>> of_double;

  template <typename Sum>
  auto& of() {
    if constexpr (std::is_same_v<Sum, float>)
      return of_float;
    else
      return of_double;
  }
};

std::shared_ptr<LabelMeanIndex::Pools> LabelMeanIndex::new_pools() { return std::make_shared<Pools>(); }

LabelMeanIndex::LabelMeanIndex(std::int64_t n_features, const In1<std::int64_t>& indptr,
                               const In1<std::int32_t>& indices, const In1<float>& data, const In1<double>& sq_norm,
                               const In1<std::uint8_t>& known, double max_sq_norm)
    : n_features_(n_features),
      indptr_(indptr),
      indices_(indices),
      data_(data),
      sq_norm_(sq_norm),
      known_(known),
      max_sq_norm_(max_sq_norm),
      one_over_length_(sq_norm_.shape(0)),
      pools_(new_pools()) {
  require(n_features >= 0, "n_features must not be negative");
  require(indptr_.shape(0) == known_.shape(0) + 1 && sq_norm_.shape(0) == known_.shape(0),
          "means must have one row a label");
  require(indices_.shape(0) == data_.shape(0), "indices and data must have the same length");
  check_csr(n_labels(), n_features, indptr_.data(), static_cast<std::int64_t>(data_.shape(0)), indices_.data());
  for (std::size_t l = 0; l < one_over_length_.size(); ++l)
    one_over_length_[l] = sq_norm_.data()[l] > 0 ? 1.0 / std::sqrt(sq_norm_.data()[l]) : 0.0;
}

// Postings and words take up to one and a half times the memory of the means, and some time: not for a few pairs only.
void LabelMeanIndex::announce(std::int64_t n_pairs) const {
  if (postings_.load(std::memory_order_acquire) != nullptr) return;
  const std::lock_guard lock(mutex_);
  announced_ += n_pairs;
  if (owned_ || announced_ < kPairsWorthPostings * n_labels()) return;
  auto made = std::make_unique<Postings>();
  const auto d = static_cast<std::size_t>(n_features_);
  std::vector<std::int64_t> next(d + 1, 0);  // how many labels have a feature, then where the next one goes
  for (std::size_t p = 0; p < indices_.shape(0); ++p) ++next[static_cast<std::size_t>(indices_.data()[p])];
  made->start.assign(d + 1, 0);
  made->full_row.assign(d, -1);
  std::int32_t n_full = 0;
  for (std::size_t f = 0; f < d; ++f) {
    const bool full = next[f] * kFullFrom >= n_labels() && next[f] > 0;
    if (full) made->full_row[f] = n_full++;
    made->start[f + 1] = made->start[f] + (full ? 0 : next[f]);
    next[f] = made->start[f];
  }
  const std::int64_t n_words = (n_features_ + kBits - 1) / kBits;
  made->first_word.assign(static_cast<std::size_t>(n_labels()), -1);
  std::int64_t n_long = 0;
  for (std::int64_t l = 0; l < n_labels(); ++l)
    if (kWordsFrom * (indptr_.data()[l + 1] - indptr_.data()[l]) >= n_features_)
      made->first_word[static_cast<std::size_t>(l)] = n_words * n_long++;
  made->words.resize(static_cast<std::size_t>(n_words * n_long));
  for (std::int64_t l = 0; l < n_labels(); ++l) {
    if (made->first_word[static_cast<std::size_t>(l)] < 0) continue;
    Word* const words = made->words.data() + made->first_word[static_cast<std::size_t>(l)];
    for (std::int64_t p = indptr_.data()[l]; p < indptr_.data()[l + 1]; ++p)
      words[indices_.data()[p] / kBits].bits |= std::uint64_t{1} << (indices_.data()[p] % kBits);
    for (std::int64_t w = 1; w < n_words; ++w) words[w].before = words[w - 1].before + std::popcount(words[w - 1].bits);
  }
  made->posting.resize(static_cast<std::size_t>(made->start[d]));
  made->full.assign(static_cast<std::size_t>(n_full * n_labels()), 0.0f);
  for (std::int64_t l = 0; l < n_labels(); ++l)
    for (std::int64_t p = indptr_.data()[l]; p < indptr_.data()[l + 1]; ++p) {
      const auto f = static_cast<std::size_t>(indices_.data()[p]);
      if (made->full_row[f] >= 0)
        made->full[static_cast<std::size_t>(made->full_row[f] * n_labels() + l)] = data_.data()[p];
      else
        made->posting[static_cast<std::size_t>(next[f]++)] = {static_cast<std::int32_t>(l), data_.data()[p]};
    }
  owned_ = std::move(made);
  postings_.store(owned_.get(), std::memory_order_release);
}

void LabelMeanIndex::announce_all() const { announce(kPairsWorthPostings * n_labels()); }

template <typename Sum>
std::unique_ptr<LabelMeanIndex::Products<Sum>> LabelMeanIndex::take() const {
  return pools_->of<Sum>().take([&] { return std::make_unique<Products<Sum>>(*this); });
}

template <typename Sum>
void LabelMeanIndex::give_back(std::unique_ptr<Products<Sum>> scratch, std::int64_t n_rows) const {
  if (scratch && n_rows <= ScratchPool<Products<Sum>>::kMostRows) pools_->of<Sum>().give_back(std::move(scratch));
}

template <typename Sum>
LabelMeanIndex::Products<Sum>::Products(const LabelMeanIndex& index)
    : index_(index), spread_(static_cast<std::size_t>(index.n_features_), Sum(0)) {}

template <typename Sum>
void LabelMeanIndex::Products<Sum>::take_row(const SparseRow& x) {
  x_ = x;
  sq_x_ = x.sq_norm();
  one_over_length_ = sq_x_ > 0 ? 1.0 / std::sqrt(sq_x_) : 0.0;
  postings_ = index_.postings_.load(std::memory_order_acquire);
}

template <typename Sum>
void LabelMeanIndex::Products<Sum>::open_all(const SparseRow& x) {
  take_row(x);
  add_postings();
}

template <typename Sum>
void LabelMeanIndex::Products<Sum>::open(const SparseRow& x, const std::int32_t* labels, std::int64_t n_labels) {
  take_row(x);
  bool at_once = false;
  if (postings_ != nullptr) {
    // What running over all postings, and clearing all sums, costs beside running down the means of the labels, or
    // the row where they have words.
    std::int64_t of_postings = index_.n_labels(), of_labels = 0;
    for (std::int64_t j = 0; j < x.size; ++j) {
      const auto f = static_cast<std::size_t>(x.index[j]);
      of_postings += postings_->full_row[f] >= 0 ? index_.n_labels() / kAtATime
                                                 : postings_->start[f + 1] - postings_->start[f];
    }
    const std::int64_t* start = index_.indptr_.data();
    for (std::int64_t i = 0; i < n_labels; ++i) {
      const std::int64_t size = start[labels[i] + 1] - start[labels[i]];
      of_labels += postings_->first_word[static_cast<std::size_t>(labels[i])] < 0 ? size : std::min(size, x.size);
    }
    at_once = kRunDown * of_postings < of_labels;
  }
  if (at_once)
    add_postings();
  else
    add_labels(labels, n_labels);
}

template <typename Sum>
void LabelMeanIndex::Products<Sum>::add_postings() {
  const std::int64_t n = index_.n_labels();
  sums_.assign(static_cast<std::size_t>(n), Sum(0));
  Sum* const sums = sums_.data();
  for (std::int64_t j = 0; j < x_.size; ++j) {
    const auto f = static_cast<std::size_t>(x_.index[j]);
    const Sum value = x_.value[j];
    if (postings_->full_row[f] >= 0) {
      by_level<add_scaled<Sum>>(value, postings_->full.data() + postings_->full_row[f] * n, n, sums);
      continue;
    }
    const Posting* const end = postings_->posting.data() + postings_->start[f + 1];
    for (const Posting* p = postings_->posting.data() + postings_->start[f]; p < end; ++p)
      sums[p->label] += value * p->value;
  }
}

// Label by label: each feature of x is looked up in the mean, by its words if it has any, or, where that is shorter, the mean is run down. Four
// means of about the same length are run down side by side, as each sum has to wait for its last addition.
template <typename Sum>
void LabelMeanIndex::Products<Sum>::add_labels(const std::int32_t* labels, std::int64_t n_labels) {
  const std::int64_t* start = index_.indptr_.data();
  const auto size = [start](std::int32_t label) { return start[label + 1] - start[label]; };
  sums_.resize(static_cast<std::size_t>(index_.n_labels()));
  run_down_.clear();
  for (std::int64_t i = 0; i < n_labels; ++i) {
    const std::int32_t label = labels[i];
    const std::int64_t word = postings_ == nullptr ? -1 : postings_->first_word[static_cast<std::size_t>(label)];
    if (word >= 0 && x_.size < size(label)) {
      sums_[static_cast<std::size_t>(label)] = product_of_shared(postings_->words.data() + word, start[label]);
      continue;
    }
    const auto steps = static_cast<std::int64_t>(std::bit_width(static_cast<std::uint64_t>(size(label))));
    if (x_.size * steps < size(label))
      sums_[static_cast<std::size_t>(label)] = look_up(start[label], start[label + 1]);
    else
      run_down_.push_back(label);
  }
  if (run_down_.empty()) return;
  constexpr std::size_t kSide = 4;
  std::sort(run_down_.begin(), run_down_.end(), [&](std::int32_t a, std::int32_t b) { return size(a) < size(b); });
  while (run_down_.size() % kSide != 0) run_down_.push_back(run_down_.back());  // the same sum again
  for (std::int64_t j = 0; j < x_.size; ++j) spread_[static_cast<std::size_t>(x_.index[j])] = x_.value[j];
  for (std::size_t i = 0; i < run_down_.size(); i += kSide) {
    const std::int32_t* index[kSide];
    const float* value[kSide];
    Sum sum[kSide] = {0};
    for (std::size_t k = 0; k < kSide; ++k) {
      index[k] = index_.indices_.data() + start[run_down_[i + k]];
      value[k] = index_.data_.data() + start[run_down_[i + k]];
    }
    const std::int64_t together = size(run_down_[i]);  // the shortest
    // Products of zero do not change a sum.
    for (std::int64_t p = 0; p < together; ++p)
      for (std::size_t k = 0; k < kSide; ++k) sum[k] += spread_[static_cast<std::size_t>(index[k][p])] * value[k][p];
    for (std::size_t k = 0; k < kSide; ++k) {
      for (std::int64_t p = together; p < size(run_down_[i + k]); ++p)
        sum[k] += spread_[static_cast<std::size_t>(index[k][p])] * value[k][p];
      sums_[static_cast<std::size_t>(run_down_[i + k])] = sum[k];
    }
  }
  for (std::int64_t j = 0; j < x_.size; ++j) spread_[static_cast<std::size_t>(x_.index[j])] = Sum(0);
}

template <typename Sum>
Sum LabelMeanIndex::Products<Sum>::product_of_shared(const Word* words, std::int64_t first) {
  if (shared_.size() <= static_cast<std::size_t>(x_.size)) shared_.resize(static_cast<std::size_t>(x_.size) + 1);
  const std::int64_t n = by_level<find_shared<Word, Shared>>(x_.index, x_.size, words, shared_.data());
  const float* const mean = index_.data_.data() + first;
  Sum sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const Shared at = shared_[static_cast<std::size_t>(i)];
    sum += static_cast<Sum>(x_.value[at.in_row]) * mean[at.in_mean];
  }
  return sum;
}

template <typename Sum>
Sum LabelMeanIndex::Products<Sum>::look_up(std::int64_t first, std::int64_t last) const {
  const std::int32_t* const indices = index_.indices_.data();
  Sum sum = 0;
  const std::int32_t* at = indices + first;
  for (std::int64_t j = 0; j < x_.size; ++j) {
    at = std::lower_bound(at, indices + last, x_.index[j]);
    if (at == indices + last) break;
    if (*at == x_.index[j]) sum += static_cast<Sum>(x_.value[j]) * index_.data_.data()[at - indices];
  }
  return sum;
}

// For instance_trees.cpp.
template class LabelMeanIndex::Products<float>;
template std::unique_ptr<LabelMeanIndex::Products<float>> LabelMeanIndex::take() const;
template void LabelMeanIndex::give_back(std::unique_ptr<Products<float>>, std::int64_t) const;

namespace {

// row(products, i, first, last): what is wanted of the pairs first .. last, those of row i.
template <typename Sum, typename Row>
void for_each_row(const LabelMeanIndex& index, const QueryRows& X, const In1<std::int64_t>& pair_indptr,
                  const In1<std::int32_t>& pair_labels, int n_threads, const Row& row) {
  index.announce(static_cast<std::int64_t>(pair_labels.shape(0)));
  std::vector<std::unique_ptr<LabelMeanIndex::Products<Sum>>> workers(static_cast<std::size_t>(n_threads));
  parallel_for(X.n_rows, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int w) {
    auto& worker = workers[static_cast<std::size_t>(w)];
    if (!worker) worker = index.take<Sum>();
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = pair_indptr.data()[i], last = pair_indptr.data()[i + 1];
      worker->open({X.indices + X.indptr[i], X.data + X.indptr[i], X.indptr[i + 1] - X.indptr[i]},
                   pair_labels.data() + first, last - first);
      row(*worker, first, last);
    }
  });
  index.give_back(std::move(workers[0]), X.n_rows);
}

}  // namespace

Array2<float> distances(const LabelMeanIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                        In1<float> data, In1<std::int64_t> pair_indptr, In1<std::int32_t> pair_labels,
                        int n_threads) {
  require(n_threads >= 1, "n_threads must be positive");
  const QueryRows X = require_rows(indptr, indices, data, index.n_features());
  require_pairs(pair_indptr, pair_labels, X.n_rows, index.n_labels());
  const std::size_t m = pair_labels.shape(0);
  std::vector<float> out(2 * m);
  for_each_row<double>(index, X, pair_indptr, pair_labels, n_threads,
               [&](const LabelMeanIndex::Products<double>& x, std::int64_t first, std::int64_t last) {
                 for (auto p = static_cast<std::size_t>(first); p < static_cast<std::size_t>(last); ++p) {
                   const std::int32_t label = pair_labels.data()[p];
                   const double product = x.product(label);
                   out[p] = distance_of(kL2, x.squared_l2(label, product));
                   out[m + p] = distance_of(kCosine, x.cosine(label, product));
                 }
               });
  return to_array(std::move(out), 2, m);
}

Array1<float> tail_log_probability(const LabelMeanIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                                   In1<float> data, In1<std::int64_t> pair_indptr, In1<std::int32_t> pair_labels,
                                   double gamma, bool unit_means, int n_threads) {
  require(n_threads >= 1, "n_threads must be positive");
  const QueryRows X = require_rows(indptr, indices, data, index.n_features());
  require_pairs(pair_indptr, pair_labels, X.n_rows, index.n_labels());
  const TailProbability tail{gamma, unit_means};
  std::vector<float> out(pair_labels.shape(0));
  for_each_row<float>(index, X, pair_indptr, pair_labels, n_threads,
               [&](const LabelMeanIndex::Products<float>& x, std::int64_t first, std::int64_t last) {
                 for (auto p = static_cast<std::size_t>(first); p < static_cast<std::size_t>(last); ++p)
                   out[p] = static_cast<float>(tail.log_of(x, pair_labels.data()[p]));
               });
  return to_array(std::move(out));
}

std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<float>> nearest_means(
    const LabelMeanIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices, In1<float> data, std::int64_t k,
    double gamma, bool unit_means, int n_threads) {
  require(n_threads >= 1, "n_threads must be positive");
  require(k >= 1, "k must be positive");
  const QueryRows X = require_rows(indptr, indices, data, index.n_features());
  const TailProbability tail{gamma, unit_means};
  struct Hit {
    double squared;
    std::int32_t label;
    bool operator<(const Hit& other) const {
      return squared != other.squared ? squared < other.squared : label < other.label;
    }
  };
  index.announce_all();
  ScoredLists lists;
  const std::int64_t most = std::min(k, index.n_labels());
  lists.ids.resize(static_cast<std::size_t>(X.n_rows * most));
  lists.scores.resize(lists.ids.size());
  std::vector<std::int64_t> count(static_cast<std::size_t>(X.n_rows));
  std::vector<std::unique_ptr<LabelMeanIndex::Products<float>>> workers(static_cast<std::size_t>(n_threads));
  parallel_for(X.n_rows, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int w) {
    auto& worker = workers[static_cast<std::size_t>(w)];
    if (!worker) worker = index.take<float>();
    std::vector<Hit> hits;
    for (std::int64_t i = begin; i < end; ++i) {
      worker->open_all({X.indices + X.indptr[i], X.data + X.indptr[i], X.indptr[i + 1] - X.indptr[i]});
      hits.clear();
      for (std::int32_t l = 0; l < index.n_labels(); ++l)
        if (worker->product(l) > 0.0f) hits.push_back({tail.squared_distance(*worker, l), l});
      if (static_cast<std::int64_t>(hits.size()) > most) {
        std::nth_element(hits.begin(), hits.begin() + most, hits.end());
        hits.resize(static_cast<std::size_t>(most));
      }
      std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.label < b.label; });
      count[static_cast<std::size_t>(i)] = static_cast<std::int64_t>(hits.size());
      for (std::size_t j = 0; j < hits.size(); ++j) {
        const auto at = static_cast<std::size_t>(i * most) + j;
        lists.ids[at] = hits[j].label;
        lists.scores[at] = static_cast<float>(tail.log_of(*worker, hits[j].label));
      }
    }
  });
  index.give_back(std::move(workers[0]), X.n_rows);
  lists.close_gaps(count, most, 0);
  return {to_array(std::move(lists.indptr)), to_array(std::move(lists.ids)), to_array(std::move(lists.scores))};
}

}  // namespace metarank
