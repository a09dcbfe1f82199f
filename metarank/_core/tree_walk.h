// Binary trees as flat nodes: the walk shared by boosted trees and forests.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "arrays.h"

namespace metarank {

// How a node treats missing values, in the bits of LightGBM's decision_type.
enum : uint8_t { kDefaultLeft = 2, kMissingZero = 1 << 2, kMissingNan = 2 << 2, kMissingMask = 3 << 2 };

// One cache line holds two nodes and a part. A child >= 0 is a node, a child < 0 is the leaf ~child.
struct TreeNode {
  double threshold;
  int32_t feature;
  int32_t child[2];  // left where x <= threshold, right otherwise
  uint32_t missing;
};

// Nodes checked once, so that a walk can neither leave the arrays nor run in a circle: a child
// that is a node has a larger number than its parent. Without `missing`, no value is ever missing.
inline std::vector<TreeNode> checked_nodes(const In1<int32_t>& feature, const In1<double>& threshold,
                                           const In2<int32_t>& children, const In1<uint8_t>* missing,
                                           const In1<int32_t>& root, int64_t n_features, int64_t n_leaves) {
  const auto n = static_cast<int64_t>(feature.shape(0));
  require(static_cast<int64_t>(threshold.shape(0)) == n &&
              (missing == nullptr || static_cast<int64_t>(missing->shape(0)) == n) &&
              static_cast<int64_t>(children.shape(0)) == n && children.shape(1) == 2,
          "feature, threshold, children and missing must describe the same nodes");
  std::vector<TreeNode> nodes(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i) {
    TreeNode& node = nodes[i];
    node = {threshold(i), feature(i), {children(i, 0), children(i, 1)}, missing == nullptr ? 0U : (*missing)(i)};
    require(node.feature >= 0 && node.feature < n_features,
            "feature of node " + std::to_string(i) + " must lie in [0, " + std::to_string(n_features) + ")");
    for (const int32_t child : node.child)
      require(child >= 0 ? child > i && child < n : ~child < n_leaves,
              "a child of node " + std::to_string(i) + " must be a later node or a leaf");
  }
  for (size_t t = 0; t < root.shape(0); ++t)
    require(root(t) >= 0 ? root(t) < n : ~root(t) < n_leaves,
            "root of tree " + std::to_string(t) + " must be a node or a leaf");
  return nodes;
}

// LightGBM's rule: NaN counts as zero unless the node knows NaN; a missing value goes the default way.
inline bool goes_right_missing(const TreeNode& node, double x) {
  constexpr double kZero = 1e-35f;
  const uint32_t type = node.missing & kMissingMask;
  if (std::isnan(x)) {
    if (type == kMissingNan) return (node.missing & kDefaultLeft) == 0;
    x = 0.0;
  }
  if (type == kMissingZero && std::fabs(x) <= kZero) return (node.missing & kDefaultLeft) == 0;
  return !(x <= node.threshold);
}

// Trees that a row walks down side by side: a step waits for memory, and the others use the time.
constexpr size_t kWalkers = 8;

// The leaves that row x reaches in up to kWalkers trees.
template <bool kMissing, typename T>
inline void leaves_of(const TreeNode* nodes, const int32_t* root, size_t trees, const T* x, int32_t* leaf) {
  bool walking = false;
  for (size_t t = 0; t < trees; ++t) {
    leaf[t] = root[t];
    walking |= root[t] >= 0;
  }
  while (walking) {
    walking = false;
    for (size_t t = 0; t < trees; ++t) {
      // Without a branch: at its leaf a walk looks at node 0 and stays.
      const int32_t at = leaf[t];
      const TreeNode& node = nodes[at < 0 ? 0 : at];
      const auto value = static_cast<double>(x[node.feature]);
      const int32_t next = node.child[kMissing ? goes_right_missing(node, value) : !(value <= node.threshold)];
      leaf[t] = at < 0 ? at : next;
      walking |= leaf[t] >= 0;
    }
  }
  for (size_t t = 0; t < trees; ++t) leaf[t] = ~leaf[t];
}

// add(row, tree, leaf) for a block of rows, of each row in the order of the trees. Trees outermost: they are read once
// a block and stay in cache. A function of its own: inlined into what calls it, the walk takes a tenth longer.
template <bool kMissing, typename T, typename Add>
__attribute__((noinline)) void walk_trees(const std::vector<TreeNode>& nodes, const std::vector<int32_t>& root,
                                          const T* X, int64_t rows, int64_t n_features, const Add& add) {
  int32_t leaf[kWalkers];
  for (size_t first = 0; first < root.size(); first += kWalkers) {
    const size_t trees = std::min(kWalkers, root.size() - first);
    for (int64_t i = 0; i < rows; ++i) {
      leaves_of<kMissing>(nodes.data(), root.data() + first, trees, X + i * n_features, leaf);
      for (size_t t = 0; t < trees; ++t) add(i, first + t, static_cast<size_t>(leaf[t]));
    }
  }
}

}  // namespace metarank
