// Forests of instance trees (FastXML, PfastXML) grown to flat arrays.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "instance_tree_split.h"

namespace metarank {

// The trees of a forest, each seeded by its number.
struct GrowOptions {
  int n_trees;
  int64_t max_leaf;         // a node of at most so many points is a leaf
  int64_t labels_per_leaf;  // kept in a leaf
  int64_t max_depth;
  uint64_t seed;
};

// What instance_trees.h predicts with. A child >= 0 is a node, else ~child a leaf.
struct InstanceTreeArrays {
  std::vector<int32_t> roots, child;
  std::vector<float> bias;
  std::vector<int64_t> weight_start;
  std::vector<int32_t> feature;
  std::vector<float> weight;
  std::vector<int64_t> leaf_start;
  std::vector<int32_t> leaf_label;
  std::vector<float> leaf_value;
};

// Rows of X with relevances Y > 0, each row of a weight > 0.
InstanceTreeArrays train_instance_trees(const CsrView& X, const CsrView& Y, const In1<float>& row_weight,
                                        const SplitOptions& split, const GrowOptions& grow, int n_threads);

}  // namespace metarank
