#include "label_trees.h"

#include <limits>

#include "hierarchy.h"
#include "sparse_rows.h"

namespace metarank {

LabelTrees::LabelTrees(const In1<int32_t>& roots, const In1<int64_t>& child_start, const In1<int32_t>& child,
                       int64_t n_labels, const WeightBlocks& weights, Link link, float path_weight,
                       const In1<float>& label_cost)
    : roots_(roots),
      child_start_(child_start),
      child_(child),
      n_labels_(n_labels),
      weights_(weights),
      link_(link),
      path_weight_(path_weight),
      pool_(new_pool()) {
  require(path_weight >= 0.0f && path_weight <= 1.0f, "path_weight must lie in [0, 1]");
  require(n_labels >= 0 && n_labels <= std::numeric_limits<int32_t>::max(), "n_labels must lie in [0, 2^31)");
  require(link >= Link::logistic && static_cast<int>(link) < kLinks, "link must be one of those of block_scores.h");
  require(roots_.shape(0) >= 1, "there must be at least one tree");
  require(child_.shape(0) <= std::numeric_limits<int32_t>::max(), "there must be fewer than 2^31 slots");
  const std::vector<int64_t> tree_start = require_hierarchy(roots_, child_start_, child_, n_labels);
  const WeightBlocksView& view = weights_.view();
  require(view.n_nodes == n_nodes() && view.n_slots == static_cast<int64_t>(child_.shape(0)),
          "weights must be about the hierarchy's nodes and slots");
  const auto n_costs = static_cast<int64_t>(label_cost.shape(0));
  require(n_costs == n_labels || n_costs == 0, "label_cost must have one entry a label, or none");
  for (int64_t l = 0; l < n_costs; ++l)
    require(label_cost.data()[l] >= 0.0f && label_cost.data()[l] <= kLargestCost,
            "label_cost must lie in [0, largest_cost]");
  float refused[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
  edge_costs(link, refused, 8);
  refused_ = refused[0];
  slot_cost_.assign(static_cast<size_t>(view.n_slots), 0.0f);
  slot_block_.resize(static_cast<size_t>(view.n_slots));
  slot_node_.resize(static_cast<size_t>(view.n_slots));
  parent_slot_.assign(static_cast<size_t>(view.n_nodes), -1);
  label_slot_.assign(static_cast<size_t>(n_trees() * n_labels), -1);
  for (int64_t node = 0; node < view.n_nodes; ++node) {
    require(view.block_slot[view.node_block[node]] == first_slot(node) &&
                view.block_slot[view.node_block[node + 1]] == first_slot(node + 1),
            "a node's blocks must hold its slots");
    for (int64_t s = first_slot(node); s < first_slot(node + 1); ++s) slot_node_[s] = static_cast<int32_t>(node);
  }
  for (int64_t b = 0; b < view.n_blocks; ++b)
    for (int64_t s = view.block_slot[b]; s < view.block_slot[b + 1]; ++s) slot_block_[s] = static_cast<int32_t>(b);
  for (int64_t t = 0; t < n_trees(); ++t)
    for (int64_t s = first_slot(tree_start[t]); s < first_slot(tree_start[static_cast<size_t>(t) + 1]); ++s) {
      const int32_t c = child_.data()[s];
      if (c >= 0) {
        parent_slot_[c] = static_cast<int32_t>(s);
        continue;
      }
      int32_t& slot = label_slot_[t * n_labels + ~c];
      require(slot == -1, "a label must stand in at most one slot of a tree");
      slot = static_cast<int32_t>(s);
      if (n_costs > 0) slot_cost_[s] = label_cost.data()[~c];
    }
}

}  // namespace metarank
