// An ensemble of label trees, ready for prediction: hierarchy, classifiers of its edges, link.
//
// The cost of an edge is -log of the probability of taking it, the cost of a path the float32 sum from
// the root; probability = exp(-cost), and an ensemble averages probabilities over its trees. For a
// label the cost of the path above its own edge counts `path_weight` times: 1 for probabilities, less
// where leaves are trained on all points that reach them, whose classifiers then know most of what
// the path says. Costs of the labels' own, such as -log of their greatest relevance, may be added.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "block_scores.h"
#include "sparse_rows.h"
#include "scored_lists.h"
#include "weight_blocks.h"

namespace metarank {

// Mean probabilities of pairs, and log-probabilities by tree (pairs, trees) where asked for.
using TreeColumns = std::tuple<Array1<float>, std::optional<Array2<float>>>;

// What a search sees: the costs of the paths to the slots of the blocks that it looks into. A list is of a row and a
// tree.
struct Reached {
  std::vector<float> costs;

  // Costs of this block come next.
  void add(int64_t list, int32_t block) { seen_.push_back({key(list, block), static_cast<int64_t>(costs.size())}); }
  void sort() { std::sort(seen_.begin(), seen_.end()); }
  bool empty() const { return seen_.empty(); }
  const float* find(int64_t list, int32_t block) const {
    const auto place = std::lower_bound(seen_.begin(), seen_.end(), std::pair{key(list, block), int64_t{0}});
    return place == seen_.end() || place->first != key(list, block) ? nullptr : costs.data() + place->second;
  }

 private:
  static uint64_t key(int64_t list, int32_t block) { return static_cast<uint64_t>(list) << 32 | static_cast<uint32_t>(block); }
  std::vector<std::pair<uint64_t, int64_t>> seen_;
};

// Arrays and weights stay where they are: they must outlive the trees.
class LabelTrees {
 public:
  // `label_cost`: one a label, or none at all.
  LabelTrees(const In1<int32_t>& roots, const In1<int64_t>& child_start, const In1<int32_t>& child, int64_t n_labels,
             const WeightBlocks& weights, Link link, float path_weight, const In1<float>& label_cost);

  int64_t n_labels() const { return n_labels_; }
  int64_t n_features() const { return weights_.n_features(); }
  int64_t n_nodes() const { return static_cast<int64_t>(child_start_.shape(0)) - 1; }
  int64_t n_trees() const { return static_cast<int64_t>(roots_.shape(0)); }

  // The k best labels of each row found by following, level by level, the `width` nodes of smallest
  // cost. Each tree proposes its `tree_k` best; a label it does not propose has probability 0 there.
  // Scores are mean probabilities over trees. One thread can say what it has `reached`.
  LabelLists beam(const CsrView& X, int64_t width, int64_t k, int64_t tree_k, int n_threads,
                  Reached* reached = nullptr) const;

  // What such a search says of the pairs (row, label) of a CSR pattern. A label that it does not reach has the path as
  // far as it was followed, and an own edge of margin -1; a row that asks for all labels is followed to all.
  // `known`: what a search for these rows has reached.
  TreeColumns score_pairs(const CsrView& X, int64_t width, Indptr indptr, Ids labels, bool per_tree, int n_threads,
                          const Reached* known = nullptr) const;

  // The k best rows of each label (algorithm 1 of the XReg paper): node n passes on the
  // ceil(factor frac[n] n_rows) rows of smallest cost.
  LabelLists points(const CsrView& X, In1<double> frac, double factor, int64_t k, int n_threads) const;

 private:
  class Beam;
  class BeamPool;
  class Descent;

  static std::shared_ptr<BeamPool> new_pool();
  int64_t first_slot(int64_t node) const { return child_start_.data()[node]; }
  float cost_of(const Reached& reached, int64_t list, int32_t slot) const;
  void tell(const Reached& reached, int64_t begin, int64_t end, const Indptr& indptr, const Ids& labels,
            std::vector<float>& mean, std::vector<float>& per_tree) const;
  bool empty(int64_t node) const { return first_slot(node) == first_slot(node + 1); }

  In1<int32_t> roots_;
  In1<int64_t> child_start_;
  In1<int32_t> child_;
  int64_t n_labels_;
  WeightBlocks weights_;
  Link link_;
  float path_weight_, refused_;        // the latter: the cost of an edge of margin -1
  std::vector<float> slot_cost_;      // added to the cost of a slot's edge
  std::vector<int32_t> slot_block_;   // the block of a slot
  std::vector<int32_t> parent_slot_;  // of a node; -1 for a root
  std::vector<int32_t> slot_node_;    // the node that owns a slot
  std::vector<int32_t> label_slot_;   // (trees, labels); -1 where the tree has not seen the label
  std::shared_ptr<BeamPool> pool_;
};

}  // namespace metarank
