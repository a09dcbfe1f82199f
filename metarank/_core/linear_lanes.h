// Linear classifiers of several labels at once, over the same rows, by dual coordinate descent.
// Two more descents, of other arithmetic, stand in linear_train.cpp and one_vs_all.cpp; each says why.
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

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

#include "float8.h"
#include "rng.h"
#include "simd.h"

namespace metarank {

constexpr int kLabelLanes = 16;
constexpr int kFirstPasses = 2;

enum class LinearLoss : int { hinge = 0, squared_hinge = 1, logistic = 2 };

// Rows over features numbered 0 .. n_features - 1, most frequent first where it matters for speed.
struct LaneRows {
  std::int64_t n_rows = 0;
  std::int64_t n_features = 0;
  std::vector<std::uint32_t> start;    // n_rows + 1
  std::vector<std::uint32_t> feature;
  std::vector<float> value;
  std::vector<float> sq_norm;          // of the row, the constant feature included
  std::vector<float> cost;             // c_i
  std::vector<std::uint32_t> order;    // of the rows: the first n_first are all that the first passes look at
  std::uint32_t n_first = 0;
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
  std::vector<std::uint32_t> order;
  int epochs = 0;              // passes made
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

// Margins of sixteen labels: four running sums a lane, folded in one order.
METARANK_INLINE Vec margins(const std::uint32_t* feature, const float* value, std::uint32_t n, const float* W,
                            const float* bias_row, float bias) {
  Vec a{float8(bias) * load_float8(bias_row), float8(bias) * load_float8(bias_row + 8)};
  Vec b{float8(0), float8(0)}, c = b, d = b;
  std::uint32_t p = 0;
  for (; p + 4 <= n; p += 4) {
    const float* w0 = W + static_cast<std::size_t>(feature[p]) * kLabelLanes;
    const float* w1 = W + static_cast<std::size_t>(feature[p + 1]) * kLabelLanes;
    const float* w2 = W + static_cast<std::size_t>(feature[p + 2]) * kLabelLanes;
    const float* w3 = W + static_cast<std::size_t>(feature[p + 3]) * kLabelLanes;
    const Float8 x0 = float8(value[p]), x1 = float8(value[p + 1]), x2 = float8(value[p + 2]), x3 = float8(value[p + 3]);
    a.lo += x0 * load_float8(w0);
    a.hi += x0 * load_float8(w0 + 8);
    b.lo += x1 * load_float8(w1);
    b.hi += x1 * load_float8(w1 + 8);
    c.lo += x2 * load_float8(w2);
    c.hi += x2 * load_float8(w2 + 8);
    d.lo += x3 * load_float8(w3);
    d.hi += x3 * load_float8(w3 + 8);
  }
  for (; p < n; ++p) {
    const float* w = W + static_cast<std::size_t>(feature[p]) * kLabelLanes;
    const Float8 x = float8(value[p]);
    a.lo += x * load_float8(w);
    a.hi += x * load_float8(w + 8);
  }
  return {(a.lo + b.lo) + (c.lo + d.lo), (a.hi + b.hi) + (c.hi + d.hi)};
}

METARANK_INLINE void add_row(const std::uint32_t* feature, const float* value, std::uint32_t n, const Vec& step,
                             float* W, float* bias_row, float bias) {
  for (std::uint32_t p = 0; p < n; ++p) {
    float* w = W + static_cast<std::size_t>(feature[p]) * kLabelLanes;
    const Float8 x = float8(value[p]);
    store_float8(w, load_float8(w) + x * step.lo);
    store_float8(w + 8, load_float8(w + 8) + x * step.hi);
  }
  store_float8(bias_row, load_float8(bias_row) + float8(bias) * step.lo);
  store_float8(bias_row + 8, load_float8(bias_row + 8) + float8(bias) * step.hi);
}

// One dual step of eight lanes: the new dual, the step to the weights, how far the conditions of
// optimality are violated, and which lanes rest at a bound.
struct Step {
  Float8 dual, step, violation;
  Int8 resting;
};

template <LinearLoss loss>
METARANK_INLINE Step dual_step(Float8 s, Float8 z, Float8 dual, Float8 upper, Float8 lower, float sq_norm, float cost) {
  if constexpr (loss == LinearLoss::logistic) {
    const Float8 sigma = float8(1.0f) / (float8(1.0f) + exp_float8(-s));
    const Float8 c = float8(cost);
    const Float8 gap = c * (z - sigma) - dual;
    const Float8 step = gap / (float8(1.0f) + float8(0.25f * sq_norm) * c);
    return {dual + step, step, gap / c, Int8{}};
  } else {
    const Float8 y = z + z - float8(1.0f);
    const float diagonal = loss == LinearLoss::squared_hinge ? 0.5f / cost : 0.0f;
    const Float8 gradient = y * s - float8(1.0f) + float8(diagonal) * dual;
    Float8 next = larger(dual - gradient * float8(1.0f / (sq_norm + diagonal)), float8(0.0f));
    const Int8 at_zero = dual == float8(0.0f);
    Float8 violation = at_zero ? smaller(gradient, float8(0.0f)) : gradient;
    Int8 resting = at_zero & (gradient > upper);
    if constexpr (loss == LinearLoss::hinge) {
      next = smaller(next, float8(cost));
      const Int8 at_cost = dual == float8(cost);
      violation = at_cost ? larger(gradient, float8(0.0f)) : violation;
      resting |= at_cost & (gradient < lower);
    }
    return {next, y * (next - dual), violation, resting};
  }
}

template <LinearLoss loss>
METARANK_INLINE void descend(const LaneRows& X, const LaneOptions& options, int n_labels, std::uint64_t seed,
                             LaneWork& work) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const auto n = static_cast<std::uint32_t>(X.n_rows);
  float* W = work.weights.data();
  float* bias_row = W + X.n_features * kLabelLanes;
  std::uint32_t* order = work.order.data();
  std::copy(X.order.begin(), X.order.end(), order);
  Vec used{float8(0), float8(0)};
  for (int j = 0; j < 8; ++j) {
    used.lo[j] = j < n_labels ? 1.0f : 0.0f;
    used.hi[j] = j + 8 < n_labels ? 1.0f : 0.0f;
  }
  const Int8 idle_lo = used.lo == float8(0), idle_hi = used.hi == float8(0);
  std::uint32_t active = X.n_first, all = X.n_first;
  Vec upper{float8(kInfinity), float8(kInfinity)}, lower{float8(-kInfinity), float8(-kInfinity)};
  work.epochs = 0;
  for (int epoch = 0; epoch < options.max_epochs; ++epoch) {
    ++work.epochs;
    if (all < n && epoch == std::min(kFirstPasses, options.max_epochs - 1)) {
      active = all = n;
      upper = {float8(kInfinity), float8(kInfinity)};
      lower = {float8(-kInfinity), float8(-kInfinity)};
    }
    Vec largest{float8(-kInfinity), float8(-kInfinity)}, smallest{float8(kInfinity), float8(kInfinity)};
    std::uint64_t state = hash_pair(seed, static_cast<std::uint64_t>(epoch));
    for (std::uint32_t at = 0; at < active; ++at) {
      state = state * 6364136223846793005ULL + 1442695040888963407ULL;
      const auto pick = at + static_cast<std::uint32_t>(((state >> 32) * (active - at)) >> 32);
      std::swap(order[at], order[pick]);
      const std::uint32_t i = order[at];
      if (at + 1 < active) {  // what is likely next, unless this row comes to rest
        const std::uint64_t draw = (state * 6364136223846793005ULL + 1442695040888963407ULL) >> 32;
        const std::uint32_t next = order[at + 1 + static_cast<std::uint32_t>((draw * (active - at - 1)) >> 32)];
        __builtin_prefetch(X.feature.data() + X.start[next]);
        __builtin_prefetch(X.value.data() + X.start[next]);
        __builtin_prefetch(work.dual.data() + static_cast<std::size_t>(next) * kLabelLanes);
        __builtin_prefetch(work.target.data() + static_cast<std::size_t>(next) * kLabelLanes);
      }
      const std::uint32_t first = X.start[i], count = X.start[i + 1] - first;
      const std::uint32_t* feature = X.feature.data() + first;
      const float* value = X.value.data() + first;
      const Vec s = margins(feature, value, count, W, bias_row, options.bias);
      const float* z = work.target.data() + static_cast<std::size_t>(i) * kLabelLanes;
      float* dual = work.dual.data() + static_cast<std::size_t>(i) * kLabelLanes;
      const float cost = options.C * X.cost[i];
      const Step lo = dual_step<loss>(s.lo, load_float8(z), load_float8(dual), upper.lo, lower.lo, X.sq_norm[i], cost);
      const Step hi = dual_step<loss>(s.hi, load_float8(z + 8), load_float8(dual + 8), upper.hi, lower.hi, X.sq_norm[i], cost);
      if constexpr (loss != LinearLoss::logistic) {
        if (!any(~((lo.resting | idle_lo) & (hi.resting | idle_hi)))) {
          std::swap(order[at], order[--active]);
          --at;
          continue;
        }
      }
      largest = {larger(largest.lo, lo.violation), larger(largest.hi, hi.violation)};
      smallest = {smaller(smallest.lo, lo.violation), smaller(smallest.hi, hi.violation)};
      const Vec step{lo.step * used.lo, hi.step * used.hi};
      if (!any((step.lo != float8(0)) | (step.hi != float8(0)))) continue;
      store_float8(dual, lo.dual);
      store_float8(dual + 8, hi.dual);
      add_row(feature, value, count, step, W, bias_row, options.bias);
    }
    const Int8 open_lo = ((largest.lo - smallest.lo) > float8(options.tolerance)) & ~idle_lo;
    const Int8 open_hi = ((largest.hi - smallest.hi) > float8(options.tolerance)) & ~idle_hi;
    if (!any(open_lo | open_hi)) {
      if (active == n) break;
      if (all == n) active = n;  // look once more at the rows at rest
      upper = {float8(kInfinity), float8(kInfinity)};
      lower = {float8(-kInfinity), float8(-kInfinity)};
    } else {
      upper = {largest.lo > float8(0) ? largest.lo : float8(kInfinity), largest.hi > float8(0) ? largest.hi : float8(kInfinity)};
      lower = {smallest.lo < float8(0) ? smallest.lo : float8(-kInfinity),
               smallest.hi < float8(0) ? smallest.hi : float8(-kInfinity)};
    }
  }
}

}  // namespace lanes

// Trains n_labels <= 16 classifiers; targets stand in `work.target`, weights are left in
// `work.weights`. `work.target` must hold n_rows x 16 values (lanes beyond n_labels: any).
void train_lanes(const LaneRows& X, const LaneOptions& options, int n_labels, std::uint64_t seed, LaneWork& work);

}  // namespace metarank
