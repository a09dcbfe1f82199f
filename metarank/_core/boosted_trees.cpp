#include "boosted_trees.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <type_traits>

#include "float8.h"
#include "parallel.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr int64_t kGroup = 16;  // rows

// For every float x, x <= t exactly where x <= float_below(t).
float float_below(double t) {
  const auto f = static_cast<float>(t);
  return f > t ? std::nextafterf(f, -std::numeric_limits<float>::infinity()) : f;
}

// x (groups, width), sum (groups, n_outputs, 16).
METARANK_KERNEL void add_masked(const std::vector<LeafMasks::Tree>& trees, const LeafMasks::Question* questions,
                               const double* values, const float* x, int64_t width, int64_t groups, int64_t n_outputs,
                               double* sum) {
  uint32_t left[kGroup];
  for (const LeafMasks::Tree& tree : trees) {
    const double* value = values + tree.first_leaf;
    const LeafMasks::Question* const end = questions + tree.last_question;
    for (int64_t g = 0; g < groups; ++g) {
      Int8 a = ~Int8{}, b = a;
      for (const LeafMasks::Question* q = questions + tree.first_question; q < end; ++q) {
        const float* v = x + g * width + q->feature * kGroup;
        const Float8 threshold = float8(q->threshold);
        const Int8 kept = Int8{} | q->kept;
        a &= (load_float8(v) <= threshold) | kept;
        b &= (load_float8(v + 8) <= threshold) | kept;
      }
      std::memcpy(left, &a, sizeof a);
      std::memcpy(left + 8, &b, sizeof b);
      double* s = sum + (g * n_outputs + tree.output) * kGroup;
      for (int64_t i = 0; i < kGroup; ++i) s[i] += value[__builtin_ctz(left[i])];  // never 0
    }
  }
}

}  // namespace

LeafMasks::LeafMasks(const std::vector<TreeNode>& nodes, const std::vector<int32_t>& root,
                     const std::vector<double>& leaf_value, const std::vector<int32_t>& output, int64_t n_features,
                     int64_t n_outputs)
    : n_features_(n_features), n_outputs_(n_outputs) {
  for (size_t t = 0; t < root.size() && usable_; ++t) {
    Tree tree{static_cast<int64_t>(questions_.size()), 0, static_cast<int64_t>(values_.size()), output[t]};
    usable_ = add(nodes, leaf_value, root[t], tree.first_leaf, 0);
    tree.last_question = static_cast<int64_t>(questions_.size());
    trees_.push_back(tree);
  }
}

// The subtree at `code`, its leaves from left to right; false as soon as they are too many, or it is deeper than
// a tree of so few leaves can be.
bool LeafMasks::add(const std::vector<TreeNode>& nodes, const std::vector<double>& leaf_value, int32_t code,
                    int64_t first_leaf, int64_t depth) {
  const auto n_leaves = [&] { return static_cast<int64_t>(values_.size()) - first_leaf; };
  if (n_leaves() >= kMostLeaves || depth >= kMostLeaves) return false;
  if (code < 0) {
    values_.push_back(leaf_value[~code]);
    return true;
  }
  const TreeNode& node = nodes[code];
  const int64_t first = n_leaves();
  if (!add(nodes, leaf_value, node.child[0], first_leaf, depth + 1)) return false;
  const uint64_t below = (uint64_t{1} << n_leaves()) - (uint64_t{1} << first);
  questions_.push_back({float_below(node.threshold), static_cast<int32_t>(~below), node.feature});
  return add(nodes, leaf_value, node.child[1], first_leaf, depth + 1);
}

void LeafMasks::score(const float* X, int64_t rows, double* out, Scratch& scratch) const {
  const int64_t groups = (rows + kGroup - 1) / kGroup, width = n_features_ * kGroup;
  scratch.x.resize(static_cast<size_t>(groups * width));
  scratch.sum.assign(static_cast<size_t>(groups * n_outputs_ * kGroup), 0.0);
  for (int64_t i = 0; i < groups * kGroup; ++i) {
    const float* row = X + std::min(i, rows - 1) * n_features_;  // the last row fills its group
    float* x = scratch.x.data() + i / kGroup * width + i % kGroup;
    for (int64_t f = 0; f < n_features_; ++f) x[f * kGroup] = row[f];
  }
  by_level<add_masked>(trees_, questions_.data(), values_.data(), scratch.x.data(), width, groups, n_outputs_,
                      scratch.sum.data());
  for (int64_t i = 0; i < rows; ++i)
    for (int64_t k = 0; k < n_outputs_; ++k)
      out[i * n_outputs_ + k] = scratch.sum[(i / kGroup * n_outputs_ + k) * kGroup + i % kGroup];
}

BoostedTrees::BoostedTrees(const In1<int32_t>& feature, const In1<double>& threshold, const In2<int32_t>& children,
                           const In1<uint8_t>& missing, const In1<int32_t>& root, const In1<double>& leaf_value,
                           const In1<int32_t>& output, int64_t n_features, int64_t n_outputs)
    : nodes_(checked_nodes(feature, threshold, children, &missing, root, n_features,
                           static_cast<int64_t>(leaf_value.shape(0)))),
      root_(root.data(), root.data() + root.shape(0)),
      leaf_value_(leaf_value.data(), leaf_value.data() + leaf_value.shape(0)),
      output_(output.data(), output.data() + output.shape(0)),
      n_features_(n_features),
      n_outputs_(n_outputs) {
  require(n_outputs >= 1, "n_outputs must be positive");
  require(output_.size() == root_.size(), "output must name one output a tree");
  for (const int32_t k : output_) require(k >= 0 && k < n_outputs, "output must lie in [0, n_outputs)");
  for (const TreeNode& node : nodes_) zero_is_missing_ |= (node.missing & kMissingMask) == kMissingZero;
  masks_ = std::make_unique<LeafMasks>(nodes_, root_, leaf_value_, output_, n_features, n_outputs);
}

namespace {

template <typename T>
bool has_nan(const T* x, int64_t n) {
  bool any = false;
  for (int64_t i = 0; i < n; ++i) any |= x[i] != x[i];
  return any;
}

}  // namespace

template <typename T>
Array2<double> BoostedTrees::predict(const In2<T>& X, int n_threads) const {
  const auto n = static_cast<int64_t>(X.shape(0));
  require(static_cast<int64_t>(X.shape(1)) == n_features_,
          "X must have " + std::to_string(n_features_) + " columns, got " + std::to_string(X.shape(1)));
  std::vector<double> out(static_cast<size_t>(n * n_outputs_), 0.0);
  std::vector<LeafMasks::Scratch> scratch(static_cast<size_t>(std::max(1, n_threads)));
  parallel_for(n, n_threads, 64, [&](int64_t begin, int64_t end, int worker) {
    const T* x = X.data() + begin * n_features_;
    double* y = out.data() + begin * n_outputs_;
    const auto add = [this, y](int64_t i, size_t t, size_t l) { y[i * n_outputs_ + output_[t]] += leaf_value_[l]; };
    if (zero_is_missing_ || has_nan(x, (end - begin) * n_features_))
      return walk_trees<true>(nodes_, root_, x, end - begin, n_features_, add);
    if constexpr (std::is_same_v<T, float>)
      if (masks_->usable()) return masks_->score(x, end - begin, y, scratch[worker]);
    walk_trees<false>(nodes_, root_, x, end - begin, n_features_, add);
  });
  return to_array(std::move(out), static_cast<size_t>(n), static_cast<size_t>(n_outputs_));
}

template Array2<double> BoostedTrees::predict(const In2<float>&, int) const;
template Array2<double> BoostedTrees::predict(const In2<double>&, int) const;

}  // namespace metarank
