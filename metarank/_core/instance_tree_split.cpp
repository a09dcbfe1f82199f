#include "instance_tree_split.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>

#include "rng.h"

namespace metarank {

namespace {

constexpr double kDamping = 1e-12;     // added to the curvature of a column
constexpr double kLongestStep = 10.0;  // of one coordinate
constexpr double kSufficient = 0.01;   // share of the decrease foreseen that a step must bring
constexpr int kMostHalvings = 20;
constexpr double kInnerShare = 0.1;  // a step's coordinate descent stops at this share of its first violation

// How far 0 is from the subgradients of |w| + g.
double violation(double w, double g) {
  if (w > 0) return std::fabs(g + 1.0);
  if (w < 0) return std::fabs(g - 1.0);
  return std::max(0.0, std::fabs(g) - 1.0);
}

// log(1 + exp(-z)) without overflow.
double log_loss(double z) { return z > 0 ? std::log1p(std::exp(-z)) : -z + std::log1p(std::exp(z)); }

}  // namespace

double L1Logistic::loss(int64_t n_rows, const float* side, const float* cost, const std::vector<double>& margin) {
  double sum = 0.0;
  for (int64_t i = 0; i < n_rows; ++i) sum += cost[i] * log_loss(side[i] * margin[i]);
  return sum;
}

void L1Logistic::derive(const L1LogisticProblem& problem, const std::vector<double>& margin) {
  for (int64_t i = 0; i < problem.n_rows; ++i) {
    const auto at = static_cast<size_t>(i);
    const double p = 1.0 / (1.0 + std::exp(problem.side[i] * margin[at]));
    slope_[at] = static_cast<float>(-problem.cost[i] * problem.side[i] * p);
    state_[at] = {static_cast<float>(problem.cost[i] * p * (1.0 - p)), 0.0f};
  }
}

// Coordinate descent on the quadratic model around w; the result in target_, x.(target - w) in state_.
// Returns the change the model foresees of the objective, without its curvature.
double L1Logistic::descend(const L1LogisticProblem& problem, const Options& options, const std::vector<double>& w) {
  const L1LogisticProblem::Entry* const entries = problem.entry.data();
  double first = 0.0;
  for (int pass = 0; pass < options.max_passes; ++pass) {
    double total = 0.0;
    for (const int32_t j : active_) {
      const auto at = static_cast<size_t>(j);
      double g = gradient_[at] + (target_[at] - w[at]) * kDamping;
      const int64_t begin = problem.start[at], end = problem.start[at + 1];
      for (int64_t p = begin; p < end; ++p) {
        const L1LogisticProblem::Entry& e = entries[p];
        const RowState& r = state_[e.row];
        g += static_cast<double>(e.value * r.curvature * r.step);
      }
      total += violation(target_[at], g);
      const double h = hessian_[at];
      double z;
      if (g + 1.0 < h * target_[at])
        z = -(g + 1.0) / h;
      else if (g - 1.0 > h * target_[at])
        z = -(g - 1.0) / h;
      else
        z = -target_[at];
      if (std::fabs(z) < 1e-12) continue;
      z = std::clamp(z, -kLongestStep, kLongestStep);
      target_[at] += z;
      const auto step = static_cast<float>(z);
      for (int64_t p = begin; p < end; ++p) state_[entries[p].row].step += entries[p].value * step;
    }
    if (pass == 0) first = total;
    if (total <= kInnerShare * first) break;
  }
  double foreseen = 0.0;
  for (const int32_t j : active_) {
    const auto at = static_cast<size_t>(j);
    foreseen += gradient_[at] * (target_[at] - w[at]) + std::fabs(target_[at]) - std::fabs(w[at]);
  }
  return foreseen;
}

void L1Logistic::minimise(const L1LogisticProblem& problem, const Options& options, std::vector<double>& w,
                          std::vector<double>& margin) {
  const auto n = static_cast<size_t>(problem.n_rows);
  const auto m = static_cast<size_t>(problem.n_columns());
  if (state_.size() < n) {
    state_.resize(n);
    slope_.resize(n);
    trial_.resize(n);
  }
  if (gradient_.size() < m) {
    gradient_.resize(m);
    hessian_.resize(m);
    target_.resize(m);
  }
  std::copy(w.begin(), w.begin() + static_cast<std::ptrdiff_t>(m), target_.begin());
  double at_start = -1.0;
  for (int step = 0; step < options.max_steps; ++step) {
    derive(problem, margin);
    active_.clear();
    double total = 0.0;
    for (size_t j = 0; j < m; ++j) {
      double g = 0.0, h = kDamping;
      for (int64_t p = problem.start[j]; p < problem.start[j + 1]; ++p) {
        const auto row = static_cast<size_t>(problem.entry[p].row);
        const float x = problem.entry[p].value;
        g += static_cast<double>(x * slope_[row]);
        h += static_cast<double>(x * x * state_[row].curvature);
      }
      gradient_[j] = g;
      hessian_[j] = h;
      const double v = violation(w[j], g);
      total += v;
      // A weight of 0 whose gradient is far from the threshold stays out of this step.
      if (w[j] != 0.0 || std::fabs(g) > 0.9) active_.push_back(static_cast<int32_t>(j));
    }
    if (at_start < 0) at_start = total;
    if (total <= options.tolerance * at_start) return;
    const double foreseen = descend(problem, options, w);

    // Halve the step until the objective falls by a share of what was foreseen.
    double before = loss(problem.n_rows, problem.side, problem.cost, margin), norm_before = 0.0;
    for (const int32_t j : active_) norm_before += std::fabs(w[j]);
    double length = 1.0;
    bool taken = false;
    for (int halving = 0; halving < kMostHalvings; ++halving, length *= 0.5) {
      for (size_t i = 0; i < n; ++i) trial_[i] = margin[i] + length * static_cast<double>(state_[i].step);
      double norm = 0.0;
      for (const int32_t j : active_) {
        const auto at = static_cast<size_t>(j);
        norm += std::fabs(w[at] + length * (target_[at] - w[at]));
      }
      const double change = loss(problem.n_rows, problem.side, problem.cost, trial_) + norm - before - norm_before;
      if (change <= kSufficient * length * foreseen) {
        taken = true;
        break;
      }
    }
    if (!taken) return;
    for (const int32_t j : active_) {
      const auto at = static_cast<size_t>(j);
      w[at] += length * (target_[at] - w[at]);
      target_[at] = w[at];
    }
    std::copy(trial_.begin(), trial_.begin() + static_cast<std::ptrdiff_t>(n), margin.begin());
  }
}

namespace {

constexpr int kMostExchanges = 100;  // of rankings and sides, in a round
constexpr size_t kWorthCounting = 512;

// Ascending; the lower halves ascend to begin with. By counting, from the lowest digit up, where keys are many.
void sort_by_upper_half(std::vector<uint64_t>& keys, std::vector<uint64_t>& spare) {
  if (keys.size() < kWorthCounting) {
    std::sort(keys.begin(), keys.end());
    return;
  }
  constexpr int kBits = 11;
  spare.resize(keys.size());
  for (int shift = 32; shift < 64; shift += kBits) {
    uint32_t start[(1 << kBits) + 1] = {0};
    const auto digit = [&](uint64_t key) { return (key >> shift) & ((1u << kBits) - 1); };
    for (const uint64_t key : keys) ++start[digit(key) + 1];
    for (int d = 0; d < 1 << kBits; ++d) start[d + 1] += start[d];
    for (const uint64_t key : keys) spare[start[digit(key)]++] = key;
    keys.swap(spare);
  }
}

}  // namespace

InstanceSplit::InstanceSplit(const RankedRows& data, const SplitOptions& options)
    : data_(data),
      options_(options),
      discount_(static_cast<size_t>(data.n_labels)),
      normaliser_(0.0),
      local_(static_cast<size_t>(data.n_labels), -1),
      feature_(static_cast<size_t>(data.n_features)),
      dense_(static_cast<size_t>(data.n_features), 0.0f) {
  for (size_t r = 0; r < discount_.size(); ++r) {
    discount_[r] = 1.0 / std::log2(static_cast<double>(r) + 2.0);
    normaliser_ += discount_[r];
  }
}

bool InstanceSplit::learn(const int32_t* rows, int64_t n, uint64_t seed) {
  const auto size = static_cast<size_t>(n);
  gather_labels(rows, n);
  side_.resize(size);
  cost_.resize(size);
  for (size_t i = 0; i < size; ++i) {
    side_[i] = (hash_pair(seed, i) & 1) != 0 ? 1.0f : -1.0f;
    cost_[i] = static_cast<float>(options_.log_cost) * data_.weight[rows[i]];
  }
  margin_.assign(size, 0.0);
  w_.clear();
  kept_.clear();
  for (int round = 0; round < options_.rounds; ++round) {
    for (int exchange = 0; exchange < kMostExchanges; ++exchange) {
      rank(n);
      if (!choose_sides(n)) break;
    }
    if (options_.balanced) weigh(rows, n);
    fit_hyperplane(rows, n);
  }
  assign(rows, n);
  for (const int32_t label : labels_) local_[label] = -1;
  const auto n_right = std::count(right_.begin(), right_.end(), uint8_t{1});
  return n_right > 0 && n_right < static_cast<std::ptrdiff_t>(n);
}

void InstanceSplit::gather_labels(const int32_t* rows, int64_t n) {
  labels_.clear();
  y_start_.assign(1, 0);
  y_label_.clear();
  y_gain_.clear();
  for (int64_t i = 0; i < n; ++i) {
    const int64_t begin = data_.Y.indptr[rows[i]], end = data_.Y.indptr[rows[i] + 1];
    const size_t first = y_gain_.size();
    for (int64_t p = begin; p < end; ++p) {
      const int32_t label = data_.Y.indices[p];
      int32_t& local = local_[label];
      if (local < 0) {
        local = static_cast<int32_t>(labels_.size());
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
      for (size_t r = 0; r < best.size(); ++r) normaliser += best[r] * discount_[r];
      if (normaliser <= 0.0) normaliser = 1.0;
    }
    const double factor = options_.rank_cost * static_cast<double>(data_.weight[rows[i]]) / normaliser;
    for (size_t p = first; p < y_gain_.size(); ++p) y_gain_[p] *= factor;
    y_start_.push_back(static_cast<int64_t>(y_gain_.size()));
  }
}

// The best ranking of each side: labels by their gains on it. Those without any stand behind, in any order.
void InstanceSplit::rank(int64_t n) {
  const size_t m = labels_.size();
  for (int s = 0; s < 2; ++s) score_[s].assign(m, 0.0);
  for (int64_t i = 0; i < n; ++i) {
    std::vector<double>& score = score_[side_[i] > 0 ? 1 : 0];
    for (int64_t p = y_start_[i]; p < y_start_[static_cast<size_t>(i) + 1]; ++p) score[y_label_[p]] += y_gain_[p];
  }
  for (int s = 0; s < 2; ++s) {
    label_discount_[s].resize(m);
    order_.resize(m);
    size_t n_scored = 0;
    for (size_t l = 0; l < m; ++l) {  // scores are >= 0: their bits are in their order
      order_[n_scored] = static_cast<uint64_t>(~std::bit_cast<uint32_t>(static_cast<float>(score_[s][l]))) << 32 | l;
      n_scored += score_[s][l] > 0.0;
    }
    size_t behind = n_scored;
    for (size_t l = 0; l < m; ++l)
      if (score_[s][l] <= 0.0) label_discount_[s][l] = discount_[behind++];
    order_.resize(n_scored);
    sort_by_upper_half(order_, spare_);
    for (size_t r = 0; r < n_scored; ++r) label_discount_[s][order_[r] & 0xffffffffu] = discount_[r];
  }
}

// The better side of each point; where both are as good, it stays.
bool InstanceSplit::choose_sides(int64_t n) {
  bool changed = false;
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    double better = static_cast<double>(cost_[at]) * margin_[at];  // log(1 + exp(m)) - log(1 + exp(-m)) = m
    for (int64_t p = y_start_[at]; p < y_start_[at + 1]; ++p) {
      const auto l = static_cast<size_t>(y_label_[p]);
      better += y_gain_[p] * (label_discount_[1][l] - label_discount_[0][l]);
    }
    const float side = better > 0 ? 1.0f : better < 0 ? -1.0f : side_[at];
    changed |= side != side_[at];
    side_[at] = side;
  }
  return changed;
}

// One over the shares of the sides in the points' costs.
void InstanceSplit::weigh(const int32_t* rows, int64_t n) {
  double total[2] = {0.0, 0.0};
  for (int64_t i = 0; i < n; ++i) total[side_[i] > 0] += static_cast<double>(data_.weight[rows[i]]);
  for (int64_t i = 0; i < n; ++i) {
    const auto at = static_cast<size_t>(i);
    cost_[at] = static_cast<float>(options_.log_cost * static_cast<double>(data_.weight[rows[i]]) *
                                   ((total[0] + total[1]) / total[side_[at] > 0]));
  }
}

// Columns of the features that may have a weight. |gradient| <= the greater of the sums of a feature over
// the sides, wherever w is: where that is at most 1, the weight of the minimum is 0.
void InstanceSplit::fit_hyperplane(const int32_t* rows, int64_t n) {
  // No branch depends on which features a row has, which cannot be foreseen.
  touched_.resize(feature_.size() + 1);  // once; later calls find it so
  size_t n_touched = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float cost = cost_[i];
    const int plus = side_[i] > 0;
    for (int64_t p = data_.X.indptr[rows[i]]; p < data_.X.indptr[rows[i] + 1]; ++p) {
      Feature& f = feature_[data_.X.indices[p]];
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
  for (size_t j = 0; j + 1 < before.size(); ++j)
    if (before[j] != 0.0) feature_[kept_[j]].pull[0] = 2.0f;
  std::vector<int32_t> kept_before(std::move(kept_));

  kept_.clear();
  for (auto f = first; f != last; ++f) {
    const Feature& feature = feature_[*f];
    if (std::max(feature.pull[0], feature.pull[1]) > 1.0f) kept_.push_back(*f);
  }
  std::sort(kept_.begin(), kept_.end());
  problem_.start.assign(1, 0);
  int64_t n_values = 0;
  for (size_t j = 0; j < kept_.size(); ++j) {
    Feature& feature = feature_[kept_[j]];
    feature.column = static_cast<int32_t>(j);
    n_values += feature.count;
    problem_.start.push_back(n_values);
  }
  w_.assign(kept_.size() + 1, 0.0);
  for (size_t j = 0; j + 1 < before.size(); ++j) {
    const int32_t column = feature_[kept_before[j]].column;
    if (column >= 0) w_[column] = before[j];
  }
  if (!before.empty()) w_.back() = before.back();

  problem_.n_rows = n;
  problem_.side = side_.data();
  problem_.cost = cost_.data();
  problem_.entry.resize(static_cast<size_t>(n_values + n));
  next_.assign(problem_.start.begin(), problem_.start.end());
  const auto others = static_cast<int32_t>(kept_.size());  // written over and over, then by the bias
  for (auto f = first; f != last; ++f) {
    Feature& feature = feature_[*f];
    if (feature.column < 0) feature.column = others;
  }
  for (int64_t i = 0; i < n; ++i)
    for (int64_t p = data_.X.indptr[rows[i]]; p < data_.X.indptr[rows[i] + 1]; ++p) {
      const int32_t column = feature_[data_.X.indices[p]].column;
      const auto at = static_cast<size_t>(next_[column]);
      next_[column] += column != others;
      problem_.entry[at] = {static_cast<int32_t>(i), data_.X.data[p]};
    }
  for (int64_t i = 0; i < n; ++i)  // the bias: a column of ones
    problem_.entry[n_values + i] = {static_cast<int32_t>(i), 1.0f};
  problem_.start.push_back(n_values + n);
  for (auto f = first; f != last; ++f) feature_[*f] = Feature();
  solver_.minimise(problem_, options_.logistic, w_, margin_);
}

void InstanceSplit::assign(const int32_t* rows, int64_t n) {
  features_.clear();
  weights_.clear();
  for (size_t j = 0; j < kept_.size(); ++j) {
    const auto weight = static_cast<float>(w_[j]);
    if (weight == 0.0f) continue;
    features_.push_back(kept_[j]);
    weights_.push_back(weight);
    dense_[kept_[j]] = weight;
  }
  bias_ = static_cast<float>(w_.back());
  right_.resize(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    const int64_t begin = data_.X.indptr[rows[i]], end = data_.X.indptr[rows[i] + 1];
    right_[i] = margin_of(bias_, dense_.data(), data_.X.indices + begin, data_.X.data + begin, end - begin) > 0.0f;
  }
  for (const int32_t f : features_) dense_[f] = 0.0f;
}

}  // namespace metarank
