#include "one_vs_all.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "arrays.h"
#include "parallel.h"
#include "linear_lanes.h"
#include "sparse_rows.h"

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
  int64_t n, d;
  std::vector<int64_t> start;
  std::vector<uint32_t> feature;
  std::vector<float> value, sq_norm;
  std::vector<float> background;
  std::vector<uint32_t> all;  // 0 .. n - 1
  FeatureOrder order;

  Rows(const SparseRows& X, int64_t n, int64_t d)
      : n(n), d(d), start(X.indptr, X.indptr + n + 1), feature(static_cast<size_t>(start.back())),
        value(X.data, X.data + start.back()), sq_norm(static_cast<size_t>(n)), all(static_cast<size_t>(n)),
        order(X, start.back(), d) {
    for (size_t p = 0; p < feature.size(); ++p) feature[p] = order.rank[X.indices[p]];
    for (size_t i = 0; i < sq_norm.size(); ++i)
      for (auto p = static_cast<size_t>(start[i]); p < static_cast<size_t>(start[i + 1]); ++p)
        sq_norm[i] += value[p] * value[p];
    std::iota(all.begin(), all.end(), 0u);
    background.assign(static_cast<size_t>(d) * kLabelLanes, 0.0f);
    const float part = 1.0f / static_cast<float>(n);
    for (size_t p = 0; p < feature.size(); ++p)
      for (size_t j = 0; j < kLabelLanes; ++j)
        background[static_cast<size_t>(feature[p]) * kLabelLanes + j] -= part * value[p];
  }

  METARANK_INLINE lanes::Row row(uint32_t i) const {
    const auto first = static_cast<size_t>(start[i]);
    return {feature.data() + first, value.data() + first, static_cast<uint32_t>(start[i + 1] - start[i])};
  }
};

// Scratch of one worker: the group at hand.
struct Group {
  std::vector<float> W;                 // (d, 16)
  float bias[kLabelLanes];
  float rest_dual[kLabelLanes];         // of the row that stands for those outside the working set
  float positive_cost[kLabelLanes];
  int n_labels = 0;
  std::vector<uint32_t> rows;      // the working set
  std::vector<float> dual;              // (rows, 16)
  std::vector<uint32_t> relevant;  // (rows): bit j where the row is relevant for label j
  std::vector<uint32_t> order;
  std::vector<char> inside;             // (n): whether a row is in the working set
  std::vector<uint32_t> near, previous;
};

// 1 in the lanes whose bit is set, 0 elsewhere.
METARANK_INLINE Int8 lanes_of(uint32_t bits) {
  const Int8 select{1, 2, 4, 8, 16, 32, 64, 128};
  const auto b = static_cast<int32_t>(bits);
  return (Int8{b, b, b, b, b, b, b, b} & select) != 0;
}

// The row without features: an exact step of its dual, by which the bias moves.
METARANK_INLINE void rest_step(Float8 diagonal, Float8 rate, Float8& dual, Float8& bias) {
  const Float8 next = larger(dual + (bias + float8(1.0f) - diagonal * dual) * rate, float8(0.0f));
  bias -= next - dual;
  dual = next;
}

// The working set and the row that stands for all others: costs go by label.
struct GroupProblem {
  static constexpr bool kRests = true;
  const Rows& X;
  Group& group;
  float n_rest;
  Float8 rest_diagonal, rest_rate;
  Vec rest;        // the dual of the row for the others
  float negative;  // 1 / (2 C), and 1 / (2 C c) of the relevant rows
  Vec positive;

  METARANK_INLINE GroupProblem(const Rows& X, float C, Group& group)
      : X(X), group(group), n_rest(static_cast<float>(X.n) - static_cast<float>(group.rows.size())),
        rest_diagonal(float8(0.5f / (C * n_rest))), rest_rate(float8(1.0f) / (float8(1.0f) + rest_diagonal)),
        rest{load_float8(group.rest_dual), load_float8(group.rest_dual + 8)}, negative(0.5f / C) {
    float diagonal[kLabelLanes];
    for (int j = 0; j < kLabelLanes; ++j) diagonal[j] = 0.5f / (C * group.positive_cost[j]);
    positive = {load_float8(diagonal), load_float8(diagonal + 8)};
  }

  METARANK_INLINE lanes::Row row(uint32_t k) const { return X.row(group.rows[k]); }
  METARANK_INLINE float* dual(uint32_t k) const {
    return group.dual.data() + static_cast<size_t>(k) * kLabelLanes;
  }
  METARANK_INLINE void expect(uint32_t) const {}
  METARANK_INLINE void before_row(Vec& bias) {
    if (n_rest <= 0.0f) return;
    rest_step(rest_diagonal, rest_rate, rest.lo, bias.lo);
    rest_step(rest_diagonal, rest_rate, rest.hi, bias.hi);
  }

  METARANK_INLINE lanes::Steps steps(uint32_t k, const Vec& s, const lanes::Span& span) const {
    const float* a = dual(k);
    const float sq_norm = X.sq_norm[group.rows[k]] + 1.0f;
    Vec y{float8(-1.0f), float8(-1.0f)}, diagonal{float8(negative), float8(negative)};
    Vec rate{float8(1.0f / (sq_norm + negative)), float8(1.0f / (sq_norm + negative))};
    if (const uint32_t relevant = group.relevant[k]) {
      const Int8 relevant_lo = lanes_of(relevant), relevant_hi = lanes_of(relevant >> 8);
      y = {relevant_lo ? float8(1.0f) : y.lo, relevant_hi ? float8(1.0f) : y.hi};
      diagonal = {relevant_lo ? positive.lo : diagonal.lo, relevant_hi ? positive.hi : diagonal.hi};
      rate = {float8(1.0f) / (float8(sq_norm) + diagonal.lo), float8(1.0f) / (float8(sq_norm) + diagonal.hi)};
    }
    return {lanes::hinge_step(s.lo, y.lo, diagonal.lo, rate.lo, load_float8(a), span.greatest.lo),
            lanes::hinge_step(s.hi, y.hi, diagonal.hi, rate.hi, load_float8(a + 8), span.greatest.hi)};
  }
};

METARANK_KERNEL void descend(const Rows& X, const SquaredHingeOptions& options, uint64_t seed, int max_epochs,
                             Group& group) {
  const auto n = static_cast<uint32_t>(group.rows.size());
  group.order.assign(X.all.begin(), X.all.begin() + n);
  GroupProblem problem(X, options.C, group);
  lanes::State state{group.W.data(), 1.0f, {load_float8(group.bias), load_float8(group.bias + 8)}, group.order.data(), 0};
  if (problem.n_rest <= 0.0f) {  // all rows are in the working set
    state.bias = {state.bias.lo + problem.rest.lo, state.bias.hi + problem.rest.hi};
    problem.rest = {float8(0), float8(0)};
  }
  lanes::descend(problem, n, n, options.tolerance, max_epochs, group.n_labels, seed, state);
  problem.before_row(state.bias);
  store_float8(group.bias, state.bias.lo);
  store_float8(group.bias + 8, state.bias.hi);
  store_float8(group.rest_dual, problem.rest.lo);
  store_float8(group.rest_dual + 8, problem.rest.hi);
}

// Row i joins the working set: its part of the rest's dual is now its own; none where it is relevant.
void join(const Rows& X, uint32_t i, uint32_t relevant, Group& group) {
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
    for (auto p = static_cast<size_t>(X.start[i]); p < static_cast<size_t>(X.start[i + 1]); ++p)
      group.W[static_cast<size_t>(X.feature[p]) * kLabelLanes + static_cast<size_t>(j)] += part * X.value[p];
  }
}

// Rows of `from` outside the working set with a margin above limit - 1 for some label join it; `near`
// becomes those of `from` with one above half the tolerance - 1.
METARANK_KERNEL bool add_rows_within(const Rows& X, float limit, float tolerance,
                                     const std::vector<uint32_t>& from, Group& group) {
  const Vec used = lanes::used_lanes(group.n_labels);
  const Int8 used_lo = used.lo != float8(0), used_hi = used.hi != float8(0);
  const Float8 within = float8(limit - 1.0f), close = float8(0.5f * tolerance - 1.0f);
  const size_t before = group.rows.size();
  group.near.clear();
  for (const uint32_t i : from) {
    if (group.inside[i]) continue;
    const Vec s = lanes::margins(X.row(i), group.W.data(), {load_float8(group.bias), load_float8(group.bias + 8)});
    if (!any(((s.lo > close) & used_lo) | ((s.hi > close) & used_hi))) continue;
    group.near.push_back(i);
    if (!any(((s.lo > within) & used_lo) | ((s.hi > within) & used_hi))) continue;
    join(X, i, 0, group);
  }
  return group.rows.size() > before;
}

// The weights of one group that matter: for each of its labels features and values, |value| factor[feature] >= least.
struct Pruned {
  std::vector<int32_t> feature[kLabelLanes];
  std::vector<float> weight[kLabelLanes];
  float bias[kLabelLanes];
};

void train_group(const Rows& X, const int32_t* labels, int n_labels, const int64_t* label_indptr,
                 const int32_t* label_rows, const float* positive_cost, const float* factor,
                 const SquaredHingeOptions& options, Group& group, Pruned& out) {
  group.W = X.background;
  group.inside.assign(static_cast<size_t>(X.n), 0);
  group.n_labels = n_labels;
  group.rows.clear();
  group.relevant.clear();
  group.dual.clear();
  std::fill(group.bias, group.bias + kLabelLanes, -1.0f);
  std::fill(group.rest_dual, group.rest_dual + kLabelLanes, 1.0f);
  std::fill(group.positive_cost, group.positive_cost + kLabelLanes, 1.0f);
  std::vector<std::pair<uint32_t, uint32_t>> relevant;  // (row, bit of the label)
  for (int j = 0; j < n_labels; ++j) {
    const auto l = static_cast<size_t>(labels[j]);
    group.positive_cost[j] = positive_cost[l];
    for (int64_t p = label_indptr[l]; p < label_indptr[l + 1]; ++p)
      relevant.emplace_back(static_cast<uint32_t>(label_rows[p]), 1u << j);
  }
  std::sort(relevant.begin(), relevant.end());
  for (size_t p = 0; p < relevant.size();) {
    const uint32_t row = relevant[p].first;
    uint32_t bits = 0;
    for (; p < relevant.size() && relevant[p].first == row; ++p) bits |= relevant[p].second;
    join(X, row, bits, group);
  }
  const uint64_t seed = hash_pair(options.seed, static_cast<uint64_t>(labels[0]));
  // Hard rows first: what they teach takes others out of reach.
  float limit = kFirstLimit * options.tolerance;
  for (int round = 0; round < kMaxRounds; ++round) {
    const bool last = limit == options.tolerance;
    by_level<descend>(X, options, hash_pair(seed, static_cast<uint64_t>(round)), last ? options.max_epochs :
                      std::min(options.max_epochs, kEarlyEpochs), group);
    std::swap(group.near, group.previous);
    const bool added = by_level<add_rows_within>(X, limit, options.tolerance, round == 0 ? X.all : group.previous,
                                                 group);
    if (last && !added && !by_level<add_rows_within>(X, limit, options.tolerance, X.all, group)) break;
    limit = std::max(options.tolerance, 0.5f * limit);
  }
  for (size_t f = 0; f < static_cast<size_t>(X.d); ++f)
    for (int j = 0; j < n_labels; ++j) {
      const float w = group.W[f * kLabelLanes + static_cast<size_t>(j)];
      if (w == 0.0f || std::fabs(w) * factor[X.order.feature[f]] < options.least) continue;
      out.feature[j].push_back(X.order.feature[f]);
      out.weight[j].push_back(w);
    }
  std::copy(group.bias, group.bias + kLabelLanes, out.bias);
}

}  // namespace

SparseClassifiers train_squared_hinge(const CsrView& x, const In1<int64_t>& label_indptr,
                                      const In1<int32_t>& label_rows, const In1<float>& positive_cost,
                                      const In1<int32_t>& order, const In1<float>& factor,
                                      const SquaredHingeOptions& options, int n_threads) {
  const int64_t n_features = x.n_columns;
  require(n_features >= 0, "n_features must be non-negative");
  require(options.C > 0.0f && std::isfinite(options.C), "C must be positive and finite");
  require(options.tolerance > 0.0f, "tolerance must be positive");
  const SparseRows X = require_csr(x);
  const auto n = static_cast<int64_t>(x.indptr.shape(0)) - 1;
  require(label_indptr.shape(0) >= 1, "label_indptr must have at least one entry");
  const auto L = static_cast<int64_t>(label_indptr.shape(0)) - 1;
  require_pairs(label_indptr, label_rows, L, n);
  require(static_cast<int64_t>(positive_cost.shape(0)) == L, "positive_cost must have one entry a label");
  for (size_t l = 0; l < positive_cost.shape(0); ++l)
    require(positive_cost(l) > 0.0f && std::isfinite(positive_cost(l)), "positive_cost must be positive and finite");
  require(static_cast<int64_t>(factor.shape(0)) == n_features, "factor must have one entry a feature");
  const auto n_order = static_cast<int64_t>(order.shape(0));
  for (size_t j = 0; j < order.shape(0); ++j) require(order(j) >= 0 && order(j) < L, "order must lie in [0, L)");
  const int64_t n_groups = (n_order + kLabelLanes - 1) / kLabelLanes;
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> feature;
  std::vector<float> weight, bias;
  const Rows rows(X, n, n_features);
  std::vector<Pruned> groups(static_cast<size_t>(n_groups));
  std::vector<Group> scratch(static_cast<size_t>(std::max(1, n_threads)));
  parallel_for(n_groups, n_threads, 1, [&](int64_t g, int64_t, int worker) {
    const auto n_labels = static_cast<int>(std::min<int64_t>(kLabelLanes, n_order - g * kLabelLanes));
    train_group(rows, order.data() + g * kLabelLanes, n_labels, label_indptr.data(), label_rows.data(),
                positive_cost.data(), factor.data(), options, scratch[worker],
                groups[g]);
  });
  for (int64_t g = 0; g < n_groups; ++g) {
    Pruned& group = groups[g];
    for (int j = 0; j < kLabelLanes && g * kLabelLanes + j < n_order; ++j) {
      feature.insert(feature.end(), group.feature[j].begin(), group.feature[j].end());
      weight.insert(weight.end(), group.weight[j].begin(), group.weight[j].end());
      indptr.push_back(static_cast<int64_t>(feature.size()));
      bias.push_back(group.bias[j]);
    }
  }
  return std::make_tuple(to_array(std::move(indptr)), to_array(std::move(feature)), to_array(std::move(weight)),
                        to_array(std::move(bias)));
}

}  // namespace metarank
