#include "l1_logistic.h"

#include <algorithm>
#include <cmath>

namespace metarank {

namespace {

constexpr double kDamping = 1e-12;      // added to the curvature of a column
constexpr double kLongestStep = 10.0;   // of one coordinate
constexpr double kSufficient = 0.01;    // share of the decrease foreseen that a step must bring
constexpr int kMostHalvings = 20;
constexpr double kInnerShare = 0.1;     // a step's coordinate descent stops at this share of its first violation

// How far 0 is from the subgradients of |w| + g.
double violation(double w, double g) {
  if (w > 0) return std::fabs(g + 1.0);
  if (w < 0) return std::fabs(g - 1.0);
  return std::max(0.0, std::fabs(g) - 1.0);
}

// log(1 + exp(-z)) without overflow.
double log_loss(double z) { return z > 0 ? std::log1p(std::exp(-z)) : -z + std::log1p(std::exp(z)); }

}  // namespace

double L1Logistic::loss(std::int64_t n_rows, const float* side, const float* cost, const std::vector<double>& margin) {
  double sum = 0.0;
  for (std::int64_t i = 0; i < n_rows; ++i) sum += cost[i] * log_loss(side[i] * margin[static_cast<std::size_t>(i)]);
  return sum;
}

void L1Logistic::derive(const L1LogisticProblem& problem, const std::vector<double>& margin) {
  for (std::int64_t i = 0; i < problem.n_rows; ++i) {
    const auto at = static_cast<std::size_t>(i);
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
    for (const std::int32_t j : active_) {
      const auto at = static_cast<std::size_t>(j);
      double g = gradient_[at] + (target_[at] - w[at]) * kDamping;
      const std::int64_t begin = problem.start[at], end = problem.start[at + 1];
      for (std::int64_t p = begin; p < end; ++p) {
        const L1LogisticProblem::Entry& e = entries[p];
        const RowState& r = state_[static_cast<std::size_t>(e.row)];
        g += static_cast<double>(e.value * r.curvature * r.step);
      }
      total += violation(target_[at], g);
      const double h = hessian_[at];
      double z;
      if (g + 1.0 < h * target_[at]) z = -(g + 1.0) / h;
      else if (g - 1.0 > h * target_[at]) z = -(g - 1.0) / h;
      else z = -target_[at];
      if (std::fabs(z) < 1e-12) continue;
      z = std::clamp(z, -kLongestStep, kLongestStep);
      target_[at] += z;
      const auto step = static_cast<float>(z);
      for (std::int64_t p = begin; p < end; ++p)
        state_[static_cast<std::size_t>(entries[p].row)].step += entries[p].value * step;
    }
    if (pass == 0) first = total;
    if (total <= kInnerShare * first) break;
  }
  double foreseen = 0.0;
  for (const std::int32_t j : active_) {
    const auto at = static_cast<std::size_t>(j);
    foreseen += gradient_[at] * (target_[at] - w[at]) + std::fabs(target_[at]) - std::fabs(w[at]);
  }
  return foreseen;
}

void L1Logistic::minimise(const L1LogisticProblem& problem, const Options& options, std::vector<double>& w,
                          std::vector<double>& margin) {
  const auto n = static_cast<std::size_t>(problem.n_rows);
  const auto m = static_cast<std::size_t>(problem.n_columns());
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
    for (std::size_t j = 0; j < m; ++j) {
      double g = 0.0, h = kDamping;
      for (std::int64_t p = problem.start[j]; p < problem.start[j + 1]; ++p) {
        const auto row = static_cast<std::size_t>(problem.entry[static_cast<std::size_t>(p)].row);
        const float x = problem.entry[static_cast<std::size_t>(p)].value;
        g += static_cast<double>(x * slope_[row]);
        h += static_cast<double>(x * x * state_[row].curvature);
      }
      gradient_[j] = g;
      hessian_[j] = h;
      const double v = violation(w[j], g);
      total += v;
      // A weight of 0 whose gradient is far from the threshold stays out of this step.
      if (w[j] != 0.0 || std::fabs(g) > 0.9) active_.push_back(static_cast<std::int32_t>(j));
    }
    if (at_start < 0) at_start = total;
    if (total <= options.tolerance * at_start) return;
    const double foreseen = descend(problem, options, w);

    // Halve the step until the objective falls by a share of what was foreseen.
    double before = loss(problem.n_rows, problem.side, problem.cost, margin), norm_before = 0.0;
    for (const std::int32_t j : active_) norm_before += std::fabs(w[static_cast<std::size_t>(j)]);
    double length = 1.0;
    bool taken = false;
    for (int halving = 0; halving < kMostHalvings; ++halving, length *= 0.5) {
      for (std::size_t i = 0; i < n; ++i) trial_[i] = margin[i] + length * static_cast<double>(state_[i].step);
      double norm = 0.0;
      for (const std::int32_t j : active_) {
        const auto at = static_cast<std::size_t>(j);
        norm += std::fabs(w[at] + length * (target_[at] - w[at]));
      }
      const double change = loss(problem.n_rows, problem.side, problem.cost, trial_) + norm - before - norm_before;
      if (change <= kSufficient * length * foreseen) {
        taken = true;
        break;
      }
    }
    if (!taken) return;
    for (const std::int32_t j : active_) {
      const auto at = static_cast<std::size_t>(j);
      w[at] += length * (target_[at] - w[at]);
      target_[at] = w[at];
    }
    std::copy(trial_.begin(), trial_.begin() + static_cast<std::ptrdiff_t>(n), margin.begin());
  }
}

}  // namespace metarank
