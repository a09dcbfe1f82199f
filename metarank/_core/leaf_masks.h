// Boosted trees of few leaves, evaluated without walking (QuickScorer, Lucchese et al. 2015).
//
// The leaves of a tree are numbered from left to right. A node that a row leaves to the right rules out the
// leaves below its left child, and the row's leaf is the first that no node rules out. So all nodes of a tree
// are asked, in any order, by sixteen rows at a time and without a branch; up to 32 leaves, that takes less
// time than following each row down.
#pragma once

#include <cstdint>
#include <vector>

#include "tree_walk.h"

namespace metarank {

class LeafMasks {
 public:
  static constexpr std::int64_t kMostLeaves = 32;

  LeafMasks(const std::vector<TreeNode>& nodes, const std::vector<std::int32_t>& root,
            const std::vector<double>& leaf_value, const std::vector<std::int32_t>& output, std::int64_t n_features,
            std::int64_t n_outputs);

  // Whether every tree has at most 32 leaves.
  bool usable() const { return usable_; }

  // One worker's memory: groups of 16 rows, turned so that a feature's values stand side by side, and their sums.
  struct Scratch {
    std::vector<float> x;     // (groups, features, 16)
    std::vector<double> sum;  // (groups, outputs, 16)
  };

  // Raw scores (rows, outputs) of rows without NaN: the sums of the trees' leaves, in the order of the trees.
  void score(const float* X, std::int64_t rows, double* out, Scratch& scratch) const;

  struct Question {
    float threshold;
    std::int32_t kept;  // bits of the leaves that a step to the right does not rule out
    std::int32_t feature;
  };
  struct Tree {
    std::int64_t first_question, last_question, first_leaf;
    std::int32_t output;
  };

 private:
  bool add(const std::vector<TreeNode>& nodes, const std::vector<double>& leaf_value, std::int32_t code,
           std::int64_t first_leaf, std::int64_t depth);

  std::int64_t n_features_, n_outputs_;
  std::vector<Question> questions_;
  std::vector<Tree> trees_;
  std::vector<double> values_;  // of the leaves, tree by tree, from left to right
  bool usable_ = true;
};

}  // namespace metarank
