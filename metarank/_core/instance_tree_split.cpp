#include "instance_tree_split.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "rng.h"

namespace metarank {

namespace {

constexpr int kMostExchanges = 100;  // of rankings and sides, in a round
constexpr std::size_t kWorthCounting = 512;

// Ascending; the lower halves ascend to begin with. By counting, from the lowest digit up, where keys are many.
void sort_by_upper_half(std::vector<std::uint64_t>& keys, std::vector<std::uint64_t>& spare) {
  if (keys.size() < kWorthCounting) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  constexpr int kBits = 11;
  spare.resize(keys.size());
  for (int shift = 32; shift < 64; shift += kBits) {
    std::uint32_t start[(1 << kBits) + 1] = {0};
    const auto digit = [&](std::uint64_t key) { return (key >> shift) & ((1u << kBits) - 1); };
    for (const std::uint64_t key : keys) ++start[digit(key) + 1];
    for (int d = 0; d < 1 << kBits; ++d) start[d + 1] += start[d];
    for (const std::uint64_t key : keys) spare[start[digit(key)]++] = key;
    keys.swap(spare);
  }
}

}  // namespace

InstanceSplit::InstanceSplit(const RankedRows& data, const SplitOptions& options)
    : data_(data),
      options_(options),
      discount_(static_cast<std::size_t>(data.n_labels)),
      normaliser_(0.0),
      local_(static_cast<std::size_t>(data.n_labels), -1),
      feature_(static_cast<std::size_t>(data.n_features)),
      dense_(static_cast<std::size_t>(data.n_features), 0.0f) {
  for (std::size_t r = 0; r < discount_.size(); ++r) {
    discount_[r] = 1.0 / std::log2(static_cast<double>(r) + 2.0);
    normaliser_ += discount_[r];
  }
}

bool InstanceSplit::learn(const std::int32_t* rows, std::int64_t n, std::uint64_t seed, std::vector<double>* trace) {
  const auto size = static_cast<std::size_t>(n);
  gather_labels(rows, n);
  side_.resize(size);
  cost_.resize(size);
  for (std::size_t i = 0; i < size; ++i) {
    side_[i] = (hash_pair(seed, i) & 1) != 0 ? 1.0f : -1.0f;
    cost_[i] = static_cast<float>(options_.log_cost) * data_.weight[rows[i]];
  }
  margin_.assign(size, 0.0);
  w_.clear();
  kept_.clear();
  for (int round = 0; round < options_.rounds; ++round) {
    for (int exchange = 0; exchange < kMostExchanges; ++exchange) {
      rank(n);
      if (trace != nullptr) trace->push_back(objective(n));
      const bool changed = choose_sides(n);
      if (trace != nullptr) trace->push_back(objective(n));
      if (!changed) break;
    }
    if (options_.balanced) {
      weigh(rows, n);
      if (trace != nullptr) trace->push_back(objective(n));
    }
    fit_hyperplane(rows, n);
    if (trace != nullptr) trace->push_back(objective(n));
  }
  assign(rows, n);
  for (const std::int32_t label : labels_) local_[static_cast<std::size_t>(label)] = -1;
  const auto n_right = std::count(right_.begin(), right_.end(), std::uint8_t{1});
  return n_right > 0 && n_right < static_cast<std::ptrdiff_t>(n);
}

void InstanceSplit::gather_labels(const std::int32_t* rows, std::int64_t n) {
  labels_.clear();
  y_start_.assign(1, 0);
  y_label_.clear();
  y_gain_.clear();
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t begin = data_.Y.indptr[rows[i]], end = data_.Y.indptr[rows[i] + 1];
    const std::size_t first = y_gain_.size();
    for (std::int64_t p = begin; p < end; ++p) {
      const std::int32_t label = data_.Y.indices[p];
      std::int32_t& local = local_[static_cast<std::size_t>(label)];
      if (local < 0) {
        local = static_cast<std::int32_t>(labels_.size());
        labels_.push_back(label);
      }
      y_label_.push_back(local);
      y_gain_.push_back(static_cast<double>(data_.Y.data[p]));
    }
    double normaliser = normaliser_;
    if (options_.ideal_normaliser) {
      std::vector<double> best(y_gain_.begin() + static_cast<std::ptrdiff_t>(first), y_gain_.end());
      std::sort(best.begin(), best.end(), std::greater<>());
      normaliser = 0.0;
      for (std::size_t r = 0; r < best.size(); ++r) normaliser += best[r] * discount_[r];
      if (normaliser <= 0.0) normaliser = 1.0;
    }
    const double factor = options_.rank_cost * static_cast<double>(data_.weight[rows[i]]) / normaliser;
    for (std::size_t p = first; p < y_gain_.size(); ++p) y_gain_[p] *= factor;
    y_start_.push_back(static_cast<std::int64_t>(y_gain_.size()));
  }
}

// The best ranking of each side: labels by their gains on it. Those without any stand behind, in any order.
void InstanceSplit::rank(std::int64_t n) {
  const std::size_t m = labels_.size();
  for (int s = 0; s < 2; ++s) score_[s].assign(m, 0.0);
  for (std::int64_t i = 0; i < n; ++i) {
    std::vector<double>& score = score_[side_[static_cast<std::size_t>(i)] > 0 ? 1 : 0];
    for (std::int64_t p = y_start_[static_cast<std::size_t>(i)]; p < y_start_[static_cast<std::size_t>(i) + 1]; ++p)
      score[static_cast<std::size_t>(y_label_[static_cast<std::size_t>(p)])] += y_gain_[static_cast<std::size_t>(p)];
  }
  for (int s = 0; s < 2; ++s) {
    label_discount_[s].resize(m);
    order_.resize(m);
    std::size_t n_scored = 0;
    for (std::size_t l = 0; l < m; ++l) {  // scores are >= 0: their bits are in their order
      order_[n_scored] = static_cast<std::uint64_t>(~std::bit_cast<std::uint32_t>(static_cast<float>(score_[s][l]))) << 32 | l;
      n_scored += score_[s][l] > 0.0;
    }
    std::size_t behind = n_scored;
    for (std::size_t l = 0; l < m; ++l)
      if (score_[s][l] <= 0.0) label_discount_[s][l] = discount_[behind++];
    order_.resize(n_scored);
    sort_by_upper_half(order_, spare_);
    for (std::size_t r = 0; r < n_scored; ++r) label_discount_[s][order_[r] & 0xffffffffu] = discount_[r];
  }
}

// The better side of each point; where both are as good, it stays.
bool InstanceSplit::choose_sides(std::int64_t n) {
  bool changed = false;
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    double better = static_cast<double>(cost_[at]) * margin_[at];  // log(1 + exp(m)) - log(1 + exp(-m)) = m
    for (std::int64_t p = y_start_[at]; p < y_start_[at + 1]; ++p) {
      const auto l = static_cast<std::size_t>(y_label_[static_cast<std::size_t>(p)]);
      better += y_gain_[static_cast<std::size_t>(p)] * (label_discount_[1][l] - label_discount_[0][l]);
    }
    const float side = better > 0 ? 1.0f : better < 0 ? -1.0f : side_[at];
    changed |= side != side_[at];
    side_[at] = side;
  }
  return changed;
}

// One over the shares of the sides in the points' costs.
void InstanceSplit::weigh(const std::int32_t* rows, std::int64_t n) {
  double total[2] = {0.0, 0.0};
  for (std::int64_t i = 0; i < n; ++i)
    total[side_[static_cast<std::size_t>(i)] > 0] += static_cast<double>(data_.weight[rows[i]]);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    cost_[at] = static_cast<float>(options_.log_cost * static_cast<double>(data_.weight[rows[i]]) *
                                   ((total[0] + total[1]) / total[side_[at] > 0]));
  }
}

// Columns of the features that may have a weight. |gradient| <= the greater of the sums of a feature over
// the sides, wherever w is: where that is at most 1, the weight of the minimum is 0.
void InstanceSplit::fit_hyperplane(const std::int32_t* rows, std::int64_t n) {
  // No branch depends on which features a row has, which cannot be foreseen.
  touched_.resize(feature_.size() + 1);  // once; later calls find it so
  std::size_t n_touched = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const float cost = cost_[static_cast<std::size_t>(i)];
    const int plus = side_[static_cast<std::size_t>(i)] > 0;
    for (std::int64_t p = data_.X.indptr[rows[i]]; p < data_.X.indptr[rows[i] + 1]; ++p) {
      Feature& f = feature_[static_cast<std::size_t>(data_.X.indices[p])];
      touched_[n_touched] = data_.X.indices[p];
      n_touched += f.count == 0;
      ++f.count;
      const float pull = cost * data_.X.data[p];
      f.pull[plus ^ (pull < 0)] += std::fabs(pull);
    }
  }
  const auto first = touched_.begin(), last = first + static_cast<std::ptrdiff_t>(n_touched);
  // Weights learned before go on from where they were.
  std::vector<double> before(w_);
  for (std::size_t j = 0; j + 1 < before.size(); ++j)
    if (before[j] != 0.0) feature_[static_cast<std::size_t>(kept_[j])].pull[0] = 2.0f;
  std::vector<std::int32_t> kept_before(std::move(kept_));

  kept_.clear();
  for (auto f = first; f != last; ++f) {
    const Feature& feature = feature_[static_cast<std::size_t>(*f)];
    if (std::max(feature.pull[0], feature.pull[1]) > 1.0f) kept_.push_back(*f);
  }
  std::sort(kept_.begin(), kept_.end());
  problem_.start.assign(1, 0);
  std::int64_t n_values = 0;
  for (std::size_t j = 0; j < kept_.size(); ++j) {
    Feature& feature = feature_[static_cast<std::size_t>(kept_[j])];
    feature.column = static_cast<std::int32_t>(j);
    n_values += feature.count;
    problem_.start.push_back(n_values);
  }
  w_.assign(kept_.size() + 1, 0.0);
  for (std::size_t j = 0; j + 1 < before.size(); ++j) {
    const std::int32_t column = feature_[static_cast<std::size_t>(kept_before[j])].column;
    if (column >= 0) w_[static_cast<std::size_t>(column)] = before[j];
  }
  if (!before.empty()) w_.back() = before.back();

  problem_.n_rows = n;
  problem_.side = side_.data();
  problem_.cost = cost_.data();
  problem_.entry.resize(static_cast<std::size_t>(n_values + n));
  next_.assign(problem_.start.begin(), problem_.start.end());
  const auto others = static_cast<std::int32_t>(kept_.size());  // written over and over, then by the bias
  for (auto f = first; f != last; ++f) {
    Feature& feature = feature_[static_cast<std::size_t>(*f)];
    if (feature.column < 0) feature.column = others;
  }
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t p = data_.X.indptr[rows[i]]; p < data_.X.indptr[rows[i] + 1]; ++p) {
      const std::int32_t column = feature_[static_cast<std::size_t>(data_.X.indices[p])].column;
      const auto at = static_cast<std::size_t>(next_[static_cast<std::size_t>(column)]);
      next_[static_cast<std::size_t>(column)] += column != others;
      problem_.entry[at] = {static_cast<std::int32_t>(i), data_.X.data[p]};
    }
  for (std::int64_t i = 0; i < n; ++i)  // the bias: a column of ones
    problem_.entry[static_cast<std::size_t>(n_values + i)] = {static_cast<std::int32_t>(i), 1.0f};
  problem_.start.push_back(n_values + n);
  for (auto f = first; f != last; ++f) feature_[static_cast<std::size_t>(*f)] = Feature();
  solver_.minimise(problem_, options_.logistic, w_, margin_);
}

void InstanceSplit::assign(const std::int32_t* rows, std::int64_t n) {
  features_.clear();
  weights_.clear();
  for (std::size_t j = 0; j < kept_.size(); ++j) {
    const auto weight = static_cast<float>(w_[j]);
    if (weight == 0.0f) continue;
    features_.push_back(kept_[j]);
    weights_.push_back(weight);
    dense_[static_cast<std::size_t>(kept_[j])] = weight;
  }
  bias_ = static_cast<float>(w_.back());
  right_.resize(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t begin = data_.X.indptr[rows[i]], end = data_.X.indptr[rows[i] + 1];
    right_[static_cast<std::size_t>(i)] =
        margin_of(bias_, dense_.data(), data_.X.indices + begin, data_.X.data + begin, end - begin) > 0.0f;
  }
  for (const std::int32_t f : features_) dense_[static_cast<std::size_t>(f)] = 0.0f;
}

double InstanceSplit::objective(std::int64_t n) const {
  double sum = L1Logistic::loss(n, side_.data(), cost_.data(), margin_);
  for (const double w : w_) sum += std::fabs(w);
  for (std::int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const std::vector<double>& discount = label_discount_[side_[at] > 0 ? 1 : 0];
    for (std::int64_t p = y_start_[at]; p < y_start_[at + 1]; ++p)
      sum -= y_gain_[static_cast<std::size_t>(p)] * discount[static_cast<std::size_t>(y_label_[static_cast<std::size_t>(p)])];
  }
  return sum;
}

}  // namespace metarank
