// Forests of instance trees (FastXML, PfastXML) grown to flat arrays.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "instance_tree_split.h"

namespace metarank {

// Trees first_tree .. first_tree + n_trees of a forest, each seeded by its number.
struct GrowOptions {
  std::int64_t first_tree;
  int n_trees;
  std::int64_t max_leaf;         // a node of at most so many points is a leaf
  std::int64_t labels_per_leaf;  // kept in a leaf
  std::int64_t max_depth;
  std::uint64_t seed;
};

// What instance_trees.h predicts with. A child >= 0 is a node, else ~child a leaf.
struct InstanceTreeArrays {
  std::vector<std::int32_t> roots, child;
  std::vector<float> bias;
  std::vector<std::int64_t> weight_start;
  std::vector<std::int32_t> feature;
  std::vector<float> weight;
  std::vector<std::int64_t> leaf_start;
  std::vector<std::int32_t> leaf_label;
  std::vector<float> leaf_value;
};

// Rows of X with relevances Y > 0, each row of a weight > 0.
InstanceTreeArrays train_instance_trees(const CsrView& X, const CsrView& Y, const In1<float>& row_weight,
                                        const SplitOptions& split, const GrowOptions& grow, int n_threads);

// (w, bias, sides, right, objective after every block) of one node that holds all rows.
using OneSplit = std::tuple<Array1<float>, float, Array1<float>, Array1<std::uint8_t>, Array1<double>>;
OneSplit split_instances(const CsrView& X, const CsrView& Y, const In1<float>& row_weight,
                         const SplitOptions& options, std::uint64_t seed);

}  // namespace metarank
