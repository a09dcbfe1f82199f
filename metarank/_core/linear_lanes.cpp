#include "linear_lanes.h"

#include <algorithm>
#include <numeric>

namespace metarank {

namespace {

using lanes::Row;
using lanes::Span;
using lanes::Step;
using lanes::Steps;
using lanes::Vec;

// Rows with a cost and sixteen targets each.
template <LinearLoss loss>
struct NodeProblem {
  static constexpr bool kRests = loss != LinearLoss::logistic;
  const LaneRows& X;
  float C;
  LaneWork& work;

  METARANK_INLINE Row row(uint32_t i) const {
    const uint32_t first = X.start[i];
    return {X.feature.data() + first, X.value.data() + first, X.start[i + 1] - first};
  }
  METARANK_INLINE float* dual(uint32_t i) const { return work.dual.data() + static_cast<size_t>(i) * kLabelLanes; }
  METARANK_INLINE const float* target(uint32_t i) const {
    return work.target.data() + static_cast<size_t>(i) * kLabelLanes;
  }
  METARANK_INLINE void expect(uint32_t i) const {
    __builtin_prefetch(X.feature.data() + X.start[i]);
    __builtin_prefetch(X.value.data() + X.start[i]);
    __builtin_prefetch(dual(i));
    __builtin_prefetch(target(i));
  }
  METARANK_INLINE void before_row(Vec&) const {}

  METARANK_INLINE Steps steps(uint32_t i, const Vec& s, const Span& rest) const {
    const float *z = target(i), *a = dual(i), cost = C * X.cost[i], sq_norm = X.sq_norm[i];
    return {step(s.lo, load_float8(z), load_float8(a), rest.greatest.lo, rest.least.lo, sq_norm, cost),
            step(s.hi, load_float8(z + 8), load_float8(a + 8), rest.greatest.hi, rest.least.hi, sq_norm, cost)};
  }

  METARANK_INLINE static Step step(Float8 s, Float8 z, Float8 dual, Float8 upper, Float8 lower, float sq_norm,
                                   float cost) {
    if constexpr (loss == LinearLoss::logistic) {
      const Float8 sigma = float8(1.0f) / (float8(1.0f) + exp_float8(-s));
      const Float8 c = float8(cost);
      const Float8 gap = c * (z - sigma) - dual;
      const Float8 step = gap / (float8(1.0f) + float8(0.25f * sq_norm) * c);
      return {dual + step, step, gap / c, Int8{}};
    } else {
      const Float8 y = z + z - float8(1.0f);
      const float diagonal = loss == LinearLoss::squared_hinge ? 0.5f / cost : 0.0f;
      Step out = lanes::hinge_step(s, y, float8(diagonal), float8(1.0f / (sq_norm + diagonal)), dual, upper);
      if constexpr (loss == LinearLoss::hinge) {
        const Float8 gradient = y * s - float8(1.0f);
        const Int8 at_cost = dual == float8(cost);
        out.dual = smaller(out.dual, float8(cost));
        out.step = y * (out.dual - dual);
        out.violation = at_cost ? larger(gradient, float8(0.0f)) : out.violation;
        out.resting |= at_cost & (gradient < lower);
      }
      return out;
    }
  }
};

template <LinearLoss loss>
METARANK_KERNEL void descend(const LaneRows& X, const LaneOptions& options, int n_labels, uint64_t seed,
                             LaneWork& work) {
  float* const bias = work.weights.data() + X.n_features * kLabelLanes;
  NodeProblem<loss> problem{X, options.C, work};
  lanes::State state{
      work.weights.data(), options.bias, {load_float8(bias), load_float8(bias + 8)}, work.order.data(), 0};
  lanes::descend(problem, static_cast<uint32_t>(X.n_rows), X.n_first, options.tolerance, options.max_epochs, n_labels,
                 seed, state);
  store_float8(bias, state.bias.lo);
  store_float8(bias + 8, state.bias.hi);
}

}  // namespace

FeatureOrder::FeatureOrder(const SparseRows& X, int64_t nnz, int64_t n_features)
    : rank(static_cast<size_t>(n_features)), feature(static_cast<size_t>(n_features)) {
  std::vector<int64_t> count(static_cast<size_t>(n_features), 0);
  for (int64_t p = 0; p < nnz; ++p) ++count[X.indices[p]];
  std::iota(feature.begin(), feature.end(), 0);
  std::stable_sort(feature.begin(), feature.end(), [&](int32_t a, int32_t b) { return count[a] > count[b]; });
  for (size_t r = 0; r < feature.size(); ++r) rank[feature[r]] = static_cast<uint32_t>(r);
}

void train_lanes(const LaneRows& X, const LaneOptions& options, int n_labels, uint64_t seed, LaneWork& work) {
  work.weights.assign(static_cast<size_t>(X.n_features + 1) * kLabelLanes, 0.0f);
  work.dual.assign(static_cast<size_t>(X.n_rows) * kLabelLanes, 0.0f);
  work.order = X.order;
  switch (options.loss) {
    case LinearLoss::hinge:
      return by_level<descend<LinearLoss::hinge>>(X, options, n_labels, seed, work);
    case LinearLoss::squared_hinge:
      return by_level<descend<LinearLoss::squared_hinge>>(X, options, n_labels, seed, work);
    case LinearLoss::logistic:
      return by_level<descend<LinearLoss::logistic>>(X, options, n_labels, seed, work);
  }
}

}  // namespace metarank
