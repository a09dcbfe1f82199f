#include "linear_lanes.h"

namespace metarank {

namespace {

METARANK_KERNEL void descend_hinge(const LaneRows& X, const LaneOptions& options, int n_labels, std::uint64_t seed,
                                   LaneWork& work) {
  lanes::descend<LinearLoss::hinge>(X, options, n_labels, seed, work);
}

METARANK_KERNEL void descend_squared_hinge(const LaneRows& X, const LaneOptions& options, int n_labels,
                                           std::uint64_t seed, LaneWork& work) {
  lanes::descend<LinearLoss::squared_hinge>(X, options, n_labels, seed, work);
}

METARANK_KERNEL void descend_logistic(const LaneRows& X, const LaneOptions& options, int n_labels,
                                      std::uint64_t seed, LaneWork& work) {
  lanes::descend<LinearLoss::logistic>(X, options, n_labels, seed, work);
}

}  // namespace

void train_lanes(const LaneRows& X, const LaneOptions& options, int n_labels, std::uint64_t seed, LaneWork& work) {
  work.weights.assign(static_cast<std::size_t>(X.n_features + 1) * kLabelLanes, 0.0f);
  work.dual.assign(static_cast<std::size_t>(X.n_rows) * kLabelLanes, 0.0f);
  work.order.resize(static_cast<std::size_t>(X.n_rows));
  switch (options.loss) {
    case LinearLoss::hinge: return by_level<descend_hinge>(X, options, n_labels, seed, work);
    case LinearLoss::squared_hinge: return by_level<descend_squared_hinge>(X, options, n_labels, seed, work);
    case LinearLoss::logistic: return by_level<descend_logistic>(X, options, n_labels, seed, work);
  }
}

}  // namespace metarank
