#include "leaf_masks.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "float8.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr std::int64_t kGroup = 16;  // rows

// For every float x, x <= t exactly where x <= float_below(t).
float float_below(double t) {
  const auto f = static_cast<float>(t);
  return f > t ? std::nextafterf(f, -std::numeric_limits<float>::infinity()) : f;
}

// x (groups, width), sum (groups, n_outputs, 16).
METARANK_KERNEL void add_trees(const std::vector<LeafMasks::Tree>& trees, const LeafMasks::Question* questions,
                               const double* values, const float* x, std::int64_t width, std::int64_t groups,
                               std::int64_t n_outputs, double* sum) {
  std::uint32_t left[kGroup];
  for (const LeafMasks::Tree& tree : trees) {
    const double* value = values + tree.first_leaf;
    const LeafMasks::Question* const end = questions + tree.last_question;
    for (std::int64_t g = 0; g < groups; ++g) {
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
      for (std::int64_t i = 0; i < kGroup; ++i) s[i] += value[__builtin_ctz(left[i])];  // never 0
    }
  }
}

}  // namespace

LeafMasks::LeafMasks(const std::vector<TreeNode>& nodes, const std::vector<std::int32_t>& root,
                     const std::vector<double>& leaf_value, const std::vector<std::int32_t>& output,
                     std::int64_t n_features, std::int64_t n_outputs)
    : n_features_(n_features), n_outputs_(n_outputs) {
  for (std::size_t t = 0; t < root.size() && usable_; ++t) {
    Tree tree{static_cast<std::int64_t>(questions_.size()), 0, static_cast<std::int64_t>(values_.size()), output[t]};
    usable_ = add(nodes, leaf_value, root[t], tree.first_leaf, 0);
    tree.last_question = static_cast<std::int64_t>(questions_.size());
    trees_.push_back(tree);
  }
}

// The subtree at `code`, its leaves from left to right; false as soon as they are too many, or it is deeper than
// a tree of so few leaves can be.
bool LeafMasks::add(const std::vector<TreeNode>& nodes, const std::vector<double>& leaf_value, std::int32_t code,
                    std::int64_t first_leaf, std::int64_t depth) {
  const auto n_leaves = [&] { return static_cast<std::int64_t>(values_.size()) - first_leaf; };
  if (n_leaves() >= kMostLeaves || depth >= kMostLeaves) return false;
  if (code < 0) {
    values_.push_back(leaf_value[static_cast<std::size_t>(~code)]);
    return true;
  }
  const TreeNode& node = nodes[static_cast<std::size_t>(code)];
  const std::int64_t first = n_leaves();
  if (!add(nodes, leaf_value, node.child[0], first_leaf, depth + 1)) return false;
  const std::uint64_t below = (std::uint64_t{1} << n_leaves()) - (std::uint64_t{1} << first);
  questions_.push_back({float_below(node.threshold), static_cast<std::int32_t>(~below), node.feature});
  return add(nodes, leaf_value, node.child[1], first_leaf, depth + 1);
}

void LeafMasks::score(const float* X, std::int64_t rows, double* out, Scratch& scratch) const {
  const std::int64_t groups = (rows + kGroup - 1) / kGroup, width = n_features_ * kGroup;
  scratch.x.resize(static_cast<std::size_t>(groups * width));
  scratch.sum.assign(static_cast<std::size_t>(groups * n_outputs_ * kGroup), 0.0);
  for (std::int64_t i = 0; i < groups * kGroup; ++i) {
    const float* row = X + std::min(i, rows - 1) * n_features_;  // the last row fills its group
    float* x = scratch.x.data() + i / kGroup * width + i % kGroup;
    for (std::int64_t f = 0; f < n_features_; ++f) x[f * kGroup] = row[f];
  }
  by_level<add_trees>(trees_, questions_.data(), values_.data(), scratch.x.data(), width, groups, n_outputs_,
                      scratch.sum.data());
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t k = 0; k < n_outputs_; ++k)
      out[i * n_outputs_ + k] =
          scratch.sum[static_cast<std::size_t>((i / kGroup * n_outputs_ + k) * kGroup + i % kGroup)];
}

}  // namespace metarank
