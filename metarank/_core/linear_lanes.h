// Linear classifiers of several labels at once, over the same rows, by dual coordinate descent: `lanes::descend`, for
// the nodes of label trees (`train_lanes`) and for all labels (one_vs_all.cpp), which differ in costs and steps.
//
// Sixteen labels lie side by side in the lanes of two vectors, so that every pass over the
// features of a row serves sixteen classifiers. For one label, with x extended by a constant
// feature, minimises
//   1/2 ||w||^2 + C sum_i c_i loss(w.x_i, z_i)
// where the loss is the hinge or the squared hinge of y_i = 2 z_i - 1 (z_i in {0, 1}; Hsieh et
// al. 2008, algorithm 3), or the logistic loss of a soft target z_i in [0, 1],
//   z log(1 + exp(-s)) + (1 - z) log(1 + exp(s)).
// The two logistic terms of a row share one dual variable, beta_i = C c_i (z_i - sigma(s_i)) at
// the optimum; a step is the Newton step of its one-dimensional problem with the largest curvature
// the logistic loss can have (Shalev-Shwartz and Zhang 2013), so the dual never decreases.
// Training stops when, within each label, the violations of the optimality conditions (gradients of
// the dual; differences of probabilities for the logistic loss) span no more than the tolerance.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <vector>

#include "float8.h"
#include "sparse_rows.h"
#include "rng.h"
#include "simd.h"

namespace metarank {

constexpr int kLabelLanes = 16;
constexpr int kFirstPasses = 2;

enum class LinearLoss : int { hinge = 0, squared_hinge = 1, logistic = 2 };

// Features by falling frequency in X: their rank, and the feature of a rank. So the weights of most products stay in
// the cache.
struct FeatureOrder {
  std::vector<uint32_t> rank;
  std::vector<int32_t> feature;

  FeatureOrder(const SparseRows& X, int64_t nnz, int64_t n_features);
};

// Rows over features numbered 0 .. n_features - 1, most frequent first where it matters for speed.
struct LaneRows {
  int64_t n_rows = 0;
  int64_t n_features = 0;
  std::vector<uint32_t> start;  // n_rows + 1
  std::vector<uint32_t> feature;
  std::vector<float> value;
  std::vector<float> sq_norm;   // of the row, the constant feature included
  std::vector<float> cost;      // c_i
  std::vector<uint32_t> order;  // of the rows: the first n_first are all that the first passes look at
  uint32_t n_first = 0;
};

struct LaneOptions {
  LinearLoss loss = LinearLoss::squared_hinge;
  float C = 1.0f;
  float tolerance = 0.1f;
  int max_epochs = 20;
  float bias = 1.0f;  // value of the constant feature; 0 for none
};

// Scratch of one worker, and the result.
struct LaneWork {
  std::vector<float> weights;  // (n_features + 1) x 16; the last row belongs to the constant feature
  std::vector<float> target;   // n_rows x 16, filled by the caller
  std::vector<float> dual;     // n_rows x 16
  std::vector<uint32_t> order;
};

namespace lanes {

typedef long long Long4 __attribute__((vector_size(32)));

struct Vec {
  Float8 lo, hi;
};

METARANK_INLINE bool any(Int8 mask) {
  const Long4 m = (Long4)mask;
  return ((m[0] | m[1]) | (m[2] | m[3])) != 0;
}

// A row's features.
struct Row {
  const uint32_t* feature;
  const float* value;
  uint32_t count;
};

// 1 in the lanes of the labels at hand, 0 in those that idle.
METARANK_INLINE Vec used_lanes(int n_labels) {
  Vec used{float8(0), float8(0)};
  for (int j = 0; j < 8; ++j) {
    used.lo[j] = j < n_labels ? 1.0f : 0.0f;
    used.hi[j] = j + 8 < n_labels ? 1.0f : 0.0f;
  }
  return used;
}

// Margins of sixteen labels, `bias` that of the constant feature: four running sums a lane, folded in one order.
METARANK_INLINE Vec margins(const Row& x, const float* W, const Vec& bias) {
  Vec a = bias, b{float8(0), float8(0)}, c = b, d = b;
  const auto add = [&](uint32_t p, Vec& sum) METARANK_LAMBDA_INLINE {
    const float* w = W + static_cast<size_t>(x.feature[p]) * kLabelLanes;
    const Float8 v = float8(x.value[p]);
    sum.lo += v * load_float8(w);
    sum.hi += v * load_float8(w + 8);
  };
  uint32_t p = 0;
  for (; p + 4 <= x.count; p += 4) {
    add(p, a);
    add(p + 1, b);
    add(p + 2, c);
    add(p + 3, d);
  }
  for (; p < x.count; ++p) add(p, a);
  return {(a.lo + b.lo) + (c.lo + d.lo), (a.hi + b.hi) + (c.hi + d.hi)};
}

METARANK_INLINE void add_row(const Row& x, const Vec& step, float* W) {
  for (uint32_t p = 0; p < x.count; ++p) {
    float* w = W + static_cast<size_t>(x.feature[p]) * kLabelLanes;
    const Float8 v = float8(x.value[p]);
    store_float8(w, load_float8(w) + v * step.lo);
    store_float8(w + 8, load_float8(w + 8) + v * step.hi);
  }
}

// One dual step of eight lanes: the new dual, the step to the weights, how far the conditions of
// optimality are violated, and which lanes rest at a bound.
struct Step {
  Float8 dual, step, violation;
  Int8 resting;
};
struct Steps {
  Step lo, hi;
};

// The greatest and the least violation met; of the pass before, what lets a row at a bound rest.
struct Span {
  Vec greatest, least;
};
METARANK_INLINE Span nothing_met() {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  return {{float8(-kInfinity), float8(-kInfinity)}, {float8(kInfinity), float8(kInfinity)}};
}
METARANK_INLINE Span none_rests() {
  const Span span = nothing_met();
  return {span.least, span.greatest};
}

METARANK_INLINE Step hinge_step(Float8 s, Float8 y, Float8 diagonal, Float8 rate, Float8 dual, Float8 upper) {
  const Float8 gradient = y * s - float8(1.0f) + diagonal * dual;
  const Float8 next = larger(dual - gradient * rate, float8(0.0f));
  const Int8 at_zero = dual == float8(0.0f);
  return {next, y * (next - dual), at_zero ? smaller(gradient, float8(0.0f)) : gradient, at_zero & (gradient > upper)};
}

// The weights, the constant feature's value and weights, and the order of the rows.
struct State {
  float* W;
  float bias_value;
  Vec bias;
  uint32_t* order;
  uint32_t active;  // the rows behind these rest
};

// The next row of a pass, drawn from those not visited yet.
struct Draws {
  uint64_t state;
  static uint64_t after(uint64_t state) { return state * 6364136223846793005ULL + 1442695040888963407ULL; }
  static uint32_t below(uint32_t n, uint64_t state) { return static_cast<uint32_t>(((state >> 32) * n) >> 32); }
};

// One pass over the active rows.
template <typename Problem>
METARANK_INLINE Span pass(Problem& problem, const Span& before, const Vec& used, Draws draws, State& at) {
  const Int8 idle_lo = used.lo == float8(0), idle_hi = used.hi == float8(0);
  uint32_t* const order = at.order;
  Span met = nothing_met();
  for (uint32_t place = 0; place < at.active; ++place) {
    draws.state = Draws::after(draws.state);
    std::swap(order[place], order[place + Draws::below(at.active - place, draws.state)]);
    const uint32_t i = order[place];
    // What is likely next, unless this row comes to rest.
    if (place + 1 < at.active)
      problem.expect(order[place + 1 + Draws::below(at.active - place - 1, Draws::after(draws.state))]);
    problem.before_row(at.bias);
    const Row x = problem.row(i);
    const Float8 one = float8(at.bias_value);
    const Steps steps = problem.steps(i, margins(x, at.W, {one * at.bias.lo, one * at.bias.hi}), before);
    const Step &lo = steps.lo, &hi = steps.hi;
    if (Problem::kRests && !any(~((lo.resting | idle_lo) & (hi.resting | idle_hi)))) {
      std::swap(order[place], order[--at.active]);
      --place;
      continue;
    }
    met.greatest = {larger(met.greatest.lo, lo.violation), larger(met.greatest.hi, hi.violation)};
    met.least = {smaller(met.least.lo, lo.violation), smaller(met.least.hi, hi.violation)};
    const Vec step{lo.step * used.lo, hi.step * used.hi};
    if (!any((step.lo != float8(0)) | (step.hi != float8(0)))) continue;
    float* const dual = problem.dual(i);
    store_float8(dual, lo.dual);
    store_float8(dual + 8, hi.dual);
    add_row(x, step, at.W);
    at.bias = {at.bias.lo + one * step.lo, at.bias.hi + one * step.hi};
  }
  return met;
}

// Passes over the first n_first rows of the order, then over all n, until the violations of each label span no more
// than the tolerance. A problem says for its row i: row(i), dual(i), steps(i, margins, span of the last pass),
// expect(i) to ask for its memory, before_row(bias), and kRests, whether rows at a bound may rest.
template <typename Problem>
METARANK_INLINE void descend(Problem& problem, uint32_t n, uint32_t n_first, float tolerance, int max_epochs,
                             int n_labels, uint64_t seed, State& at) {
  const Vec used = used_lanes(n_labels);
  const auto open = [&](Float8 greatest, Float8 least, Float8 lanes) METARANK_LAMBDA_INLINE {
    return ((greatest - least) > float8(tolerance)) & (lanes != float8(0));
  };
  const Span none = none_rests();
  const auto bound = [](Int8 known, Float8 value, Float8 otherwise)
                         METARANK_LAMBDA_INLINE { return known ? value : otherwise; };
  uint32_t all = at.active = n_first;
  Span before = none;
  for (int epoch = 0; epoch < max_epochs; ++epoch) {
    if (all < n && epoch == std::min(kFirstPasses, max_epochs - 1)) {
      at.active = all = n;
      before = none;
    }
    const Span met = pass(problem, before, used, {hash_pair(seed, static_cast<uint64_t>(epoch))}, at);
    const Vec &high = met.greatest, &low = met.least;
    if (any(open(high.lo, low.lo, used.lo) | open(high.hi, low.hi, used.hi))) {
      const Float8 zero = float8(0);
      before = {{bound(high.lo > zero, high.lo, none.greatest.lo), bound(high.hi > zero, high.hi, none.greatest.hi)},
                {bound(low.lo < zero, low.lo, none.least.lo), bound(low.hi < zero, low.hi, none.least.hi)}};
      continue;
    }
    if (at.active == n) break;
    if (all == n) at.active = n;  // look once more at the rows at rest
    before = none;
  }
}

}  // namespace lanes

// Trains n_labels <= 16 classifiers; targets stand in `work.target`, weights are left in
// `work.weights`. `work.target` must hold n_rows x 16 values (lanes beyond n_labels: any).
void train_lanes(const LaneRows& X, const LaneOptions& options, int n_labels, uint64_t seed, LaneWork& work);

}  // namespace metarank
