// The margins are those of linear_lanes.h, the descent is not: here costs go by label, and rows outside a growing
// working set are one row without features, stepped before every other.
#include "one_vs_all.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

#include "arrays.h"
#include "parallel.h"
#include "linear_lanes.h"
#include "pairs.h"

namespace metarank {

namespace {

using lanes::any;
using lanes::Vec;

// The limits halve from this many tolerances; until they end the descent need not be exact.
constexpr float kFirstLimit = 4.0f;
constexpr int kEarlyEpochs = 3;
constexpr int kMaxRounds = 12;

// All rows, features most frequent first: those weights stay in the cache.
struct Rows {
  std::int64_t n, d;
  std::vector<std::int64_t> start;
  std::vector<std::uint32_t> feature;
  std::vector<float> value, sq_norm;
  std::vector<float> background;
  std::vector<std::uint32_t> all;      // 0 .. n - 1
  std::vector<std::int32_t> original;  // the feature a number stands for

  Rows(const SparseRows& X, std::int64_t n, std::int64_t d)
      : n(n), d(d), start(X.indptr, X.indptr + n + 1), feature(static_cast<std::size_t>(start.back())),
        value(X.data, X.data + start.back()), sq_norm(static_cast<std::size_t>(n)),
        original(static_cast<std::size_t>(d)) {
    std::vector<std::int64_t> count(static_cast<std::size_t>(d), 0);
    for (std::size_t p = 0; p < feature.size(); ++p) ++count[static_cast<std::size_t>(X.indices[p])];
    std::iota(original.begin(), original.end(), 0);
    std::stable_sort(original.begin(), original.end(), [&](std::int32_t a, std::int32_t b) {
      return count[static_cast<std::size_t>(a)] > count[static_cast<std::size_t>(b)];
    });
    std::vector<std::uint32_t> number(static_cast<std::size_t>(d));
    for (std::size_t f = 0; f < original.size(); ++f)
      number[static_cast<std::size_t>(original[f])] = static_cast<std::uint32_t>(f);
    for (std::size_t p = 0; p < feature.size(); ++p) feature[p] = number[static_cast<std::size_t>(X.indices[p])];
    for (std::size_t i = 0; i < sq_norm.size(); ++i)
      for (auto p = static_cast<std::size_t>(start[i]); p < static_cast<std::size_t>(start[i + 1]); ++p)
        sq_norm[i] += value[p] * value[p];
    all.resize(static_cast<std::size_t>(n));
    std::iota(all.begin(), all.end(), 0u);
    background.assign(static_cast<std::size_t>(d) * kLabelLanes, 0.0f);
    const float part = 1.0f / static_cast<float>(n);
    for (std::size_t p = 0; p < feature.size(); ++p)
      for (std::size_t j = 0; j < kLabelLanes; ++j)
        background[static_cast<std::size_t>(feature[p]) * kLabelLanes + j] -= part * value[p];
  }
};

// Scratch of one worker: the group at hand.
struct Group {
  std::vector<float> W;                 // (d, 16)
  float bias[kLabelLanes];
  float rest_dual[kLabelLanes];         // of the row that stands for those outside the working set
  float positive_cost[kLabelLanes];
  int n_labels = 0;
  std::vector<std::uint32_t> rows;      // the working set
  std::vector<float> dual;              // (rows, 16)
  std::vector<std::uint32_t> relevant;  // (rows): bit j where the row is relevant for label j
  std::vector<std::uint32_t> order;
  std::vector<char> inside;             // (n): whether a row is in the working set
  std::vector<std::uint32_t> near, previous;
};

struct Steps {
  Float8 dual, step, violation;
  Int8 resting;
};

// `diagonal` is 1 / (2 C c), `rate` one over the row's squared norm plus that.
METARANK_INLINE Steps dual_step(Float8 s, Float8 y, Float8 diagonal, Float8 rate, Float8 dual, Float8 upper) {
  const Float8 gradient = y * s - float8(1.0f) + diagonal * dual;
  const Float8 next = larger(dual - gradient * rate, float8(0.0f));
  const Int8 at_zero = dual == float8(0.0f);
  return {next, y * (next - dual), at_zero ? smaller(gradient, float8(0.0f)) : gradient, at_zero & (gradient > upper)};
}

// 1 in the lanes whose bit is set, 0 elsewhere.
METARANK_INLINE Int8 lanes_of(std::uint32_t bits) {
  const Int8 select{1, 2, 4, 8, 16, 32, 64, 128};
  const auto b = static_cast<std::int32_t>(bits);
  return (Int8{b, b, b, b, b, b, b, b} & select) != 0;
}

// The row without features: an exact step of its dual, by which the bias moves.
METARANK_INLINE void rest_step(Float8 diagonal, Float8 rate, Float8& dual, Float8& bias) {
  const Float8 next = larger(dual + (bias + float8(1.0f) - diagonal * dual) * rate, float8(0.0f));
  bias -= next - dual;
  dual = next;
}

// Dual coordinate descent over the working set.
METARANK_KERNEL void descend(const Rows& X, const SquaredHingeOptions& options, std::uint64_t seed, int max_epochs,
                             Group& group) {
  const float kInfinity = std::numeric_limits<float>::infinity();
  const auto n = static_cast<std::uint32_t>(group.rows.size());
  const float n_rest = static_cast<float>(X.n) - static_cast<float>(n);
  const Float8 rest_diagonal = float8(0.5f / (options.C * n_rest));
  const Float8 rest_rate = float8(1.0f) / (float8(1.0f) + rest_diagonal);
  const float diagonal_negative = 0.5f / options.C;
  const Float8 negative = float8(diagonal_negative);
  float diagonal_positive[kLabelLanes];
  for (int j = 0; j < kLabelLanes; ++j) diagonal_positive[j] = 0.5f / (options.C * group.positive_cost[j]);
  const Vec positive{load_float8(diagonal_positive), load_float8(diagonal_positive + 8)};
  float* W = group.W.data();
  group.order.resize(n);
  std::iota(group.order.begin(), group.order.end(), 0u);
  std::uint32_t* order = group.order.data();
  Vec bias{load_float8(group.bias), load_float8(group.bias + 8)};
  Vec rest{load_float8(group.rest_dual), load_float8(group.rest_dual + 8)};
  if (n_rest <= 0.0f) {  // all rows are in the working set
    bias = {bias.lo + rest.lo, bias.hi + rest.hi};
    rest = {float8(0), float8(0)};
  }
  const std::uint32_t used = group.n_labels == kLabelLanes ? 0xffffu : (1u << group.n_labels) - 1;
  const Int8 idle_lo = ~lanes_of(used), idle_hi = ~lanes_of(used >> 8);
  std::uint32_t active = n;
  Vec upper{float8(kInfinity), float8(kInfinity)};
  for (int epoch = 0; epoch < max_epochs; ++epoch) {
    Vec largest{float8(-kInfinity), float8(-kInfinity)}, smallest{float8(kInfinity), float8(kInfinity)};
    std::uint64_t state = hash_pair(seed, static_cast<std::uint64_t>(epoch));
    for (std::uint32_t at = 0; at < active; ++at) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto pick = at + static_cast<std::uint32_t>(((state >> 32) * (active - at)) >> 32);
      std::swap(order[at], order[pick]);
      const std::uint32_t k = order[at], i = group.rows[k];
      const auto first = static_cast<std::size_t>(X.start[i]);
      const auto count = static_cast<std::uint32_t>(X.start[i + 1] - X.start[i]);
      const std::uint32_t* feature = X.feature.data() + first;
      const float* value = X.value.data() + first;
      if (n_rest > 0.0f) {
        rest_step(rest_diagonal, rest_rate, rest.lo, bias.lo);
        rest_step(rest_diagonal, rest_rate, rest.hi, bias.hi);
      }
      float bias_row[kLabelLanes];
      store_float8(bias_row, bias.lo);
      store_float8(bias_row + 8, bias.hi);
      const Vec s = lanes::margins(feature, value, count, W, bias_row, 1.0f);
      float* dual = group.dual.data() + static_cast<std::size_t>(k) * kLabelLanes;
      const float sq_norm = X.sq_norm[i] + 1.0f;
      Vec y{float8(-1.0f), float8(-1.0f)}, diagonal{negative, negative};
      Vec rate{float8(1.0f / (sq_norm + diagonal_negative)), float8(1.0f / (sq_norm + diagonal_negative))};
      if (const std::uint32_t relevant = group.relevant[k]) {
        const Int8 relevant_lo = lanes_of(relevant), relevant_hi = lanes_of(relevant >> 8);
        y = {relevant_lo ? float8(1.0f) : y.lo, relevant_hi ? float8(1.0f) : y.hi};
        diagonal = {relevant_lo ? positive.lo : negative, relevant_hi ? positive.hi : negative};
        rate = {float8(1.0f) / (float8(sq_norm) + diagonal.lo), float8(1.0f) / (float8(sq_norm) + diagonal.hi)};
      }
      const Steps lo = dual_step(s.lo, y.lo, diagonal.lo, rate.lo, load_float8(dual), upper.lo);
      const Steps hi = dual_step(s.hi, y.hi, diagonal.hi, rate.hi, load_float8(dual + 8), upper.hi);
      if (!any(~((lo.resting | idle_lo) & (hi.resting | idle_hi)))) {
        std::swap(order[at], order[--active]);
        --at;
        continue;
      }
      largest = {larger(largest.lo, lo.violation), larger(largest.hi, hi.violation)};
      smallest = {smaller(smallest.lo, lo.violation), smaller(smallest.hi, hi.violation)};
      if (!any((lo.step != float8(0)) | (hi.step != float8(0)))) continue;
      store_float8(dual, lo.dual);
      store_float8(dual + 8, hi.dual);
      for (std::uint32_t p = 0; p < count; ++p) {
        float* w = W + static_cast<std::size_t>(feature[p]) * kLabelLanes;
        store_float8(w, load_float8(w) + float8(value[p]) * lo.step);
        store_float8(w + 8, load_float8(w + 8) + float8(value[p]) * hi.step);
      }
      bias.lo += lo.step;
      bias.hi += hi.step;
    }
    const Int8 open_lo = ((largest.lo - smallest.lo) > float8(options.tolerance)) & ~idle_lo;
    const Int8 open_hi = ((largest.hi - smallest.hi) > float8(options.tolerance)) & ~idle_hi;
    if (!any(open_lo | open_hi)) {
      if (active == n) break;
      active = n;  // look once more at the rows at rest
      upper = {float8(kInfinity), float8(kInfinity)};
    } else {
      upper = {largest.lo > float8(0) ? largest.lo : float8(kInfinity),
               largest.hi > float8(0) ? largest.hi : float8(kInfinity)};
    }
  }
  if (n_rest > 0.0f) {
    rest_step(rest_diagonal, rest_rate, rest.lo, bias.lo);
    rest_step(rest_diagonal, rest_rate, rest.hi, bias.hi);
  }
  store_float8(group.bias, bias.lo);
  store_float8(group.bias + 8, bias.hi);
  store_float8(group.rest_dual, rest.lo);
  store_float8(group.rest_dual + 8, rest.hi);
}

// Row i joins the working set: its part of the rest's dual is now its own; none where it is relevant.
void join(const Rows& X, std::uint32_t i, std::uint32_t relevant, Group& group) {
  const float part = 1.0f / static_cast<float>(X.n);
  group.inside[i] = 1;
  group.rows.push_back(i);
  group.relevant.push_back(relevant);
  for (int j = 0; j < kLabelLanes; ++j) {
    const bool is_relevant = (relevant >> j & 1) != 0;
    const float taken = std::min(group.rest_dual[j], part);
    group.rest_dual[j] -= taken;
    group.dual.push_back(is_relevant ? 0.0f : part);
    group.bias[j] += is_relevant ? taken : taken - part;
    if (!is_relevant) continue;
    for (auto p = static_cast<std::size_t>(X.start[i]); p < static_cast<std::size_t>(X.start[i + 1]); ++p)
      group.W[static_cast<std::size_t>(X.feature[p]) * kLabelLanes + static_cast<std::size_t>(j)] += part * X.value[p];
  }
}

// Rows of `from` outside the working set with a margin above limit - 1 for some label join it; `near`
// becomes those of `from` with one above half the tolerance - 1.
METARANK_KERNEL bool add_rows_within(const Rows& X, float limit, float tolerance,
                                     const std::vector<std::uint32_t>& from, Group& group) {
  const std::uint32_t used = group.n_labels == kLabelLanes ? 0xffffu : (1u << group.n_labels) - 1;
  const Int8 used_lo = lanes_of(used), used_hi = lanes_of(used >> 8);
  const Float8 within = float8(limit - 1.0f), close = float8(0.5f * tolerance - 1.0f);
  const std::size_t before = group.rows.size();
  group.near.clear();
  for (const std::uint32_t i : from) {
    if (group.inside[i]) continue;
    const auto first = static_cast<std::size_t>(X.start[i]);
    const auto count = static_cast<std::uint32_t>(X.start[i + 1] - X.start[i]);
    const Vec s = lanes::margins(X.feature.data() + first, X.value.data() + first, count, group.W.data(), group.bias,
                                 1.0f);
    if (!any(((s.lo > close) & used_lo) | ((s.hi > close) & used_hi))) continue;
    group.near.push_back(i);
    if (!any(((s.lo > within) & used_lo) | ((s.hi > within) & used_hi))) continue;
    join(X, i, 0, group);
  }
  return group.rows.size() > before;
}

// The weights of one group that matter: for each of its labels features and values, |value| factor[feature] >= least.
struct Pruned {
  std::vector<std::int32_t> feature[kLabelLanes];
  std::vector<float> weight[kLabelLanes];
  float bias[kLabelLanes];
};

void train_group(const Rows& X, const std::int32_t* labels, int n_labels, const std::int64_t* label_indptr,
                 const std::int32_t* label_rows, const float* positive_cost, const float* factor,
                 const SquaredHingeOptions& options, Group& group, Pruned& out) {
  group.W = X.background;
  group.inside.assign(static_cast<std::size_t>(X.n), 0);
  group.n_labels = n_labels;
  group.rows.clear();
  group.relevant.clear();
  group.dual.clear();
  std::fill(group.bias, group.bias + kLabelLanes, -1.0f);
  std::fill(group.rest_dual, group.rest_dual + kLabelLanes, 1.0f);
  std::fill(group.positive_cost, group.positive_cost + kLabelLanes, 1.0f);
  std::vector<std::pair<std::uint32_t, std::uint32_t>> relevant;  // (row, bit of the label)
  for (int j = 0; j < n_labels; ++j) {
    const auto l = static_cast<std::size_t>(labels[j]);
    group.positive_cost[j] = positive_cost[l];
    for (std::int64_t p = label_indptr[l]; p < label_indptr[l + 1]; ++p)
      relevant.emplace_back(static_cast<std::uint32_t>(label_rows[p]), 1u << j);
  }
  std::sort(relevant.begin(), relevant.end());
  for (std::size_t p = 0; p < relevant.size();) {
    const std::uint32_t row = relevant[p].first;
    std::uint32_t bits = 0;
    for (; p < relevant.size() && relevant[p].first == row; ++p) bits |= relevant[p].second;
    join(X, row, bits, group);
  }
  const std::uint64_t seed = hash_pair(options.seed, static_cast<std::uint64_t>(labels[0]));
  // Hard rows first: what they teach takes others out of reach.
  float limit = kFirstLimit * options.tolerance;
  for (int round = 0; round < kMaxRounds; ++round) {
    const bool last = limit == options.tolerance;
    by_level<descend>(X, options, hash_pair(seed, static_cast<std::uint64_t>(round)), last ? options.max_epochs :
                      std::min(options.max_epochs, kEarlyEpochs), group);
    std::swap(group.near, group.previous);
    const bool added = by_level<add_rows_within>(X, limit, options.tolerance, round == 0 ? X.all : group.previous,
                                                 group);
    if (last && !added && !by_level<add_rows_within>(X, limit, options.tolerance, X.all, group)) break;
    limit = std::max(options.tolerance, 0.5f * limit);
  }
  for (std::size_t f = 0; f < static_cast<std::size_t>(X.d); ++f)
    for (int j = 0; j < n_labels; ++j) {
      const float w = group.W[f * kLabelLanes + static_cast<std::size_t>(j)];
      if (w == 0.0f || std::fabs(w) * factor[X.original[f]] < options.least) continue;
      out.feature[j].push_back(X.original[f]);
      out.weight[j].push_back(w);
    }
  std::copy(group.bias, group.bias + kLabelLanes, out.bias);
}

}  // namespace

SparseClassifiers train_squared_hinge(const CsrView& x, const In1<std::int64_t>& label_indptr,
                                      const In1<std::int32_t>& label_rows, const In1<float>& positive_cost,
                                      const In1<std::int32_t>& order, const In1<float>& factor,
                                      const SquaredHingeOptions& options, int n_threads) {
  const std::int64_t n_features = x.n_columns;
  require(n_features >= 0, "n_features must be non-negative");
  require(options.C > 0.0f && std::isfinite(options.C), "C must be positive and finite");
  require(options.tolerance > 0.0f, "tolerance must be positive");
  const SparseRows X = require_csr(x.indptr, x.indices, x.data, n_features);
  const auto n = static_cast<std::int64_t>(x.indptr.shape(0)) - 1;
  require(label_indptr.shape(0) >= 1, "label_indptr must have at least one entry");
  const auto L = static_cast<std::int64_t>(label_indptr.shape(0)) - 1;
  require_pairs(label_indptr, label_rows, L, n);
  require(static_cast<std::int64_t>(positive_cost.shape(0)) == L, "positive_cost must have one entry a label");
  for (std::size_t l = 0; l < positive_cost.shape(0); ++l)
    require(positive_cost(l) > 0.0f && std::isfinite(positive_cost(l)), "positive_cost must be positive and finite");
  require(static_cast<std::int64_t>(factor.shape(0)) == n_features, "factor must have one entry a feature");
  const auto n_order = static_cast<std::int64_t>(order.shape(0));
  for (std::size_t j = 0; j < order.shape(0); ++j) require(order(j) >= 0 && order(j) < L, "order must lie in [0, L)");
  const std::int64_t n_groups = (n_order + kLabelLanes - 1) / kLabelLanes;
  std::vector<std::int64_t> indptr{0};
  std::vector<std::int32_t> feature;
  std::vector<float> weight, bias;
  const Rows rows(X, n, n_features);
  std::vector<Pruned> groups(static_cast<std::size_t>(n_groups));
  std::vector<Group> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
  parallel_for(n_groups, n_threads, 1, [&](std::int64_t g, std::int64_t, int worker) {
    const auto n_labels = static_cast<int>(std::min<std::int64_t>(kLabelLanes, n_order - g * kLabelLanes));
    train_group(rows, order.data() + g * kLabelLanes, n_labels, label_indptr.data(), label_rows.data(),
                positive_cost.data(), factor.data(), options, scratch[static_cast<std::size_t>(worker)],
                groups[static_cast<std::size_t>(g)]);
  });
  for (std::int64_t g = 0; g < n_groups; ++g) {
    Pruned& group = groups[static_cast<std::size_t>(g)];
    for (int j = 0; j < kLabelLanes && g * kLabelLanes + j < n_order; ++j) {
      feature.insert(feature.end(), group.feature[j].begin(), group.feature[j].end());
      weight.insert(weight.end(), group.weight[j].begin(), group.weight[j].end());
      indptr.push_back(static_cast<std::int64_t>(feature.size()));
      bias.push_back(group.bias[j]);
    }
  }
  return std::make_tuple(to_array(std::move(indptr)), to_array(std::move(feature)), to_array(std::move(weight)),
                        to_array(std::move(bias)));
}

}  // namespace metarank
