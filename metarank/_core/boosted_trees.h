// Raw scores of boosted trees: the sum of one leaf a tree, in tree order, in double.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrays.h"
#include "leaf_masks.h"
#include "tree_walk.h"

namespace metarank {

class BoostedTrees {
 public:
  BoostedTrees(const In1<std::int32_t>& feature, const In1<double>& threshold, const In2<std::int32_t>& children,
               const In1<std::uint8_t>& missing, const In1<std::int32_t>& root, const In1<double>& leaf_value,
               const In1<std::int32_t>& output, std::int64_t n_features, std::int64_t n_outputs);

  // (rows, outputs), of float32 or float64 rows.
  template <typename T>
  Array2<double> predict(const In2<T>& X, int n_threads) const;

 private:
  template <bool kMissing, typename T>
  void add_trees(const T* X, std::int64_t rows, double* out) const;

  std::vector<TreeNode> nodes_;
  std::vector<std::int32_t> root_;
  std::vector<double> leaf_value_;
  std::vector<std::int32_t> output_;
  std::int64_t n_features_, n_outputs_;
  bool zero_is_missing_ = false;
  std::unique_ptr<LeafMasks> masks_;
};

}  // namespace metarank
