// The flat arrays of an ensemble of label trees, at the interface: safe to follow without further checks.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"

namespace metarank {

struct HierarchyView {
  In1<int32_t> roots;
  In1<int64_t> child_start;
  In1<int32_t> child;
};

// Node n owns the slots child_start[n] .. child_start[n + 1]; a slot's child is a node (>= 0) or
// the label ~child (< 0). Returns the first node of each tree, and the number of nodes.
inline std::vector<int64_t> require_hierarchy(const In1<int32_t>& roots, const In1<int64_t>& child_start,
                                              const In1<int32_t>& child, int64_t n_labels) {
  require(child_start.shape(0) >= 1, "child_start must have at least one entry");
  require_indptr(child_start, static_cast<int64_t>(child.shape(0)), "child_start");
  const auto n_nodes = static_cast<int64_t>(child_start.shape(0)) - 1;
  std::vector<int64_t> tree_start;
  for (size_t t = 0; t < roots.shape(0); ++t) {
    require(roots(t) < n_nodes && roots(t) >= (t == 0 ? 0 : roots(t - 1) + 1) && (t > 0 || roots(t) == 0),
            "roots must be ascending node ids, the first 0");
    tree_start.push_back(roots(t));
  }
  tree_start.push_back(n_nodes);
  require(roots.shape(0) > 0 || n_nodes == 0, "every node must belong to a tree");
  std::vector<char> has_parent(static_cast<size_t>(n_nodes), 0);
  for (size_t t = 0; t + 1 < tree_start.size(); ++t)
    for (int64_t node = tree_start[t]; node < tree_start[t + 1]; ++node)
      for (int64_t s = child_start.data()[node]; s < child_start.data()[node + 1]; ++s) {
        const int32_t c = child.data()[s];
        if (c < 0) {
          require(~c < n_labels, "labels of the trees must lie in [0, n_labels)");
        } else {
          require(c > node && c < tree_start[t + 1], "a child node must follow its parent within the same tree");
          require(!has_parent[c], "a node must have one parent");
          has_parent[c] = 1;
        }
      }
  for (size_t t = 0; t + 1 < tree_start.size(); ++t)
    for (int64_t node = tree_start[t] + 1; node < tree_start[t + 1]; ++node)
      require(has_parent[node], "every node but a root must have a parent");
  return tree_start;
}

}  // namespace metarank
