// Raw scores of boosted trees: the sum of one leaf a tree, in tree order, in double.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrays.h"
#include "tree_walk.h"

namespace metarank {

// Boosted trees of few leaves, evaluated without walking (QuickScorer, Lucchese et al. 2015).
//
// The leaves of a tree are numbered from left to right. A node that a row leaves to the right rules out the
// leaves below its left child, and the row's leaf is the first that no node rules out. So all nodes of a tree
// are asked, in any order, by sixteen rows at a time and without a branch; up to 32 leaves, that takes less
// time than following each row down.
class LeafMasks {
 public:
  static constexpr int64_t kMostLeaves = 32;

  LeafMasks(const std::vector<TreeNode>& nodes, const std::vector<int32_t>& root, const std::vector<double>& leaf_value,
            const std::vector<int32_t>& output, int64_t n_features, int64_t n_outputs);

  // Whether every tree has at most 32 leaves.
  bool usable() const { return usable_; }

  // One worker's memory: groups of 16 rows, turned so that a feature's values stand side by side, and their sums.
  struct Scratch {
    std::vector<float> x;     // (groups, features, 16)
    std::vector<double> sum;  // (groups, outputs, 16)
  };

  // Raw scores (rows, outputs) of rows without NaN: the sums of the trees' leaves, in the order of the trees.
  void score(const float* X, int64_t rows, double* out, Scratch& scratch) const;

  struct Question {
    float threshold;
    int32_t kept;  // bits of the leaves that a step to the right does not rule out
    int32_t feature;
  };
  struct Tree {
    int64_t first_question, last_question, first_leaf;
    int32_t output;
  };

 private:
  bool add(const std::vector<TreeNode>& nodes, const std::vector<double>& leaf_value, int32_t code, int64_t first_leaf,
           int64_t depth);

  int64_t n_features_, n_outputs_;
  std::vector<Question> questions_;
  std::vector<Tree> trees_;
  std::vector<double> values_;  // of the leaves, tree by tree, from left to right
  bool usable_ = true;
};

class BoostedTrees {
 public:
  BoostedTrees(const In1<int32_t>& feature, const In1<double>& threshold, const In2<int32_t>& children,
               const In1<uint8_t>& missing, const In1<int32_t>& root, const In1<double>& leaf_value,
               const In1<int32_t>& output, int64_t n_features, int64_t n_outputs);

  // (rows, outputs), of float32 or float64 rows.
  template <typename T>
  Array2<double> predict(const In2<T>& X, int n_threads) const;

 private:
  std::vector<TreeNode> nodes_;
  std::vector<int32_t> root_;
  std::vector<double> leaf_value_;
  std::vector<int32_t> output_;
  int64_t n_features_, n_outputs_;
  bool zero_is_missing_ = false;
  std::unique_ptr<LeafMasks> masks_;
};

// --- Shares of features in the raw scores of boosted trees: TreeSHAP (Lundberg et al. 2018, algorithm 2).

// Trees as in BoostedTrees, and how many training rows reached each node and leaf.
struct CountedTrees {
  In1<int32_t> feature;
  In1<double> threshold;
  In2<int32_t> children;
  In1<uint8_t> missing;
  In1<int32_t> root;
  In1<double> leaf_value;
  In1<int32_t> node_count;
  In1<int32_t> leaf_count;
};

// (rows, features + 1): last the expected score. Products and sums in the order of LightGBM's pred_contrib, each
// rounded by itself, so that they are the same bytes on every platform.
template <typename T>
Array2<double> tree_shares(const CountedTrees& trees, const In2<T>& X, int n_threads);

}  // namespace metarank
