#include "label_trees.h"

#include <limits>

#include "hierarchy.h"

namespace metarank {

LabelTrees::LabelTrees(const In1<std::int32_t>& roots, const In1<std::int64_t>& child_start,
                       const In1<std::int32_t>& child, std::int64_t n_labels, const WeightBlocks& weights, Link link,
                       float path_weight, const In1<float>& label_cost)
    : roots_(roots),
      child_start_(child_start),
      child_(child),
      n_labels_(n_labels),
      weights_(weights),
      link_(link),
      path_weight_(path_weight),
      pool_(new_pool()),
      pairs_pool_(new_pairs_pool()) {
  require(path_weight >= 0.0f && path_weight <= 1.0f, "path_weight must lie in [0, 1]");
  require(n_labels >= 0 && n_labels <= std::numeric_limits<std::int32_t>::max(), "n_labels must lie in [0, 2^31)");
  require(link >= Link::logistic && static_cast<int>(link) < kLinks, "link must be one of those of block_scores.h");
  require(roots_.shape(0) >= 1, "there must be at least one tree");
  require(child_.shape(0) <= std::numeric_limits<std::int32_t>::max(), "there must be fewer than 2^31 slots");
  const std::vector<std::int64_t> tree_start = require_hierarchy(roots_, child_start_, child_, n_labels);
  const WeightBlocksView& view = weights_.view();
  require(view.n_nodes == n_nodes() && view.n_slots == static_cast<std::int64_t>(child_.shape(0)),
          "weights must be about the hierarchy's nodes and slots");
  const auto n_costs = static_cast<std::int64_t>(label_cost.shape(0));
  require(n_costs == n_labels || n_costs == 0, "label_cost must have one entry a label, or none");
  for (std::int64_t l = 0; l < n_costs; ++l)
    require(label_cost.data()[l] >= 0.0f && label_cost.data()[l] <= kLargestCost,
            "label_cost must lie in [0, largest_cost]");
  slot_cost_.assign(static_cast<std::size_t>(view.n_slots), 0.0f);
  slot_block_.resize(static_cast<std::size_t>(view.n_slots));
  slot_node_.resize(static_cast<std::size_t>(view.n_slots));
  parent_slot_.assign(static_cast<std::size_t>(view.n_nodes), -1);
  label_slot_.assign(static_cast<std::size_t>(n_trees() * n_labels), -1);
  for (std::int64_t node = 0; node < view.n_nodes; ++node) {
    require(view.block_slot[view.node_block[node]] == first_slot(node) &&
                view.block_slot[view.node_block[node + 1]] == first_slot(node + 1),
            "a node's blocks must hold its slots");
    for (std::int64_t s = first_slot(node); s < first_slot(node + 1); ++s)
      slot_node_[static_cast<std::size_t>(s)] = static_cast<std::int32_t>(node);
  }
  for (std::int64_t b = 0; b < view.n_blocks; ++b)
    for (std::int64_t s = view.block_slot[b]; s < view.block_slot[b + 1]; ++s)
      slot_block_[static_cast<std::size_t>(s)] = static_cast<std::int32_t>(b);
  for (std::int64_t t = 0; t < n_trees(); ++t)
    for (std::int64_t s = first_slot(tree_start[static_cast<std::size_t>(t)]);
         s < first_slot(tree_start[static_cast<std::size_t>(t) + 1]); ++s) {
      const std::int32_t c = child_.data()[s];
      if (c >= 0) {
        parent_slot_[static_cast<std::size_t>(c)] = static_cast<std::int32_t>(s);
        continue;
      }
      std::int32_t& slot = label_slot_[static_cast<std::size_t>(t * n_labels + ~c)];
      require(slot == -1, "a label must stand in at most one slot of a tree");
      slot = static_cast<std::int32_t>(s);
      if (n_costs > 0) slot_cost_[static_cast<std::size_t>(s)] = label_cost.data()[~c];
    }
}

namespace {

void require_beam(const BeamOptions& options, int n_threads) {
  require(options.beam >= 1, "beam must be positive");
  require(options.k >= 1, "k must be positive");
  require(options.tree_k >= options.k, "tree_k must be at least k");
  require(n_threads >= 1, "n_threads must be positive");
}

}  // namespace

TreeLists beam(const LabelTrees& trees, const QueryRows& X, const BeamOptions& options, int n_threads) {
  require_beam(options, n_threads);
  ScoredLists lists = trees.beam(X, options, n_threads);
  const std::size_t m = lists.ids.size();
  std::optional<Array2<float>> columns;
  if (options.per_tree) columns = to_array(std::move(lists.per_tree), m, static_cast<std::size_t>(trees.n_trees()));
  return {to_array(std::move(lists.indptr)), to_array(std::move(lists.ids)), to_array(std::move(lists.scores)),
          std::move(columns)};
}

TreeColumns score_pairs(const LabelTrees& trees, const QueryRows& X, const In1<std::int64_t>& indptr,
                        const In1<std::int32_t>& labels, bool per_tree, int n_threads) {
  require(n_threads >= 1, "n_threads must be positive");
  require(static_cast<std::int64_t>(indptr.shape(0)) == X.n_rows + 1,
          "indptr must have one entry more than X has rows");
  require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "indptr");
  for (std::size_t p = 0; p < labels.shape(0); ++p)
    require(labels.data()[p] >= 0 && labels.data()[p] < trees.n_labels(), "labels must lie in [0, n_labels)");
  PairScores scores = trees.score_pairs(X, indptr.data(), labels.data(), per_tree, n_threads);
  std::optional<Array2<float>> columns;
  if (per_tree)
    columns = to_array(std::move(scores.per_tree), labels.shape(0), static_cast<std::size_t>(trees.n_trees()));
  return {to_array(std::move(scores.scores)), std::move(columns)};
}

PointLists points(const LabelTrees& trees, const QueryRows& X, const In1<double>& frac, double factor, std::int64_t k,
                  int n_threads) {
  require(k >= 1, "k must be positive");
  require(n_threads >= 1, "n_threads must be positive");
  require(factor > 0 && std::isfinite(factor), "factor must be positive and finite");
  require(X.n_rows <= std::numeric_limits<std::int32_t>::max(), "X must have fewer than 2^31 rows");
  require(static_cast<std::int64_t>(frac.shape(0)) == trees.n_nodes(), "frac must have one entry a node");
  for (std::size_t n = 0; n < frac.shape(0); ++n)
    require(frac.data()[n] >= 0 && frac.data()[n] <= 1, "frac must lie in [0, 1]");
  ScoredLists lists = trees.points(X, frac.data(), factor, k, n_threads);
  return {to_array(std::move(lists.indptr)), to_array(std::move(lists.ids)), to_array(std::move(lists.scores))};
}

}  // namespace metarank
