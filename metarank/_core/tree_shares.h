// Shares of features in the raw scores of boosted trees: TreeSHAP (Lundberg et al. 2018, algorithm 2).
#pragma once

#include <cstdint>

#include "arrays.h"

namespace metarank {

// Trees as in BoostedTrees, and how many training rows reached each node and leaf.
struct CountedTrees {
  In1<std::int32_t> feature;
  In1<double> threshold;
  In2<std::int32_t> children;
  In1<std::uint8_t> missing;
  In1<std::int32_t> root;
  In1<double> leaf_value;
  In1<std::int32_t> node_count;
  In1<std::int32_t> leaf_count;
};

// (rows, features + 1): last the expected score. Products and sums in the order of LightGBM's pred_contrib, each
// rounded by itself, so that they are the same bytes on every platform.
template <typename T>
Array2<double> tree_shares(const CountedTrees& trees, const In2<T>& X, int n_threads);

}  // namespace metarank
