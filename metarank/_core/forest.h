// Label probabilities of extra trees (boosted trees are in boosted_trees.h): the mean over the trees of the leaf's shares of relevant rows.
//
// A leaf holds few of the labels, so leaves are stored sparsely. Sums run in tree order, in double.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "tree_walk.h"

namespace metarank {

class Forest {
 public:
  Forest(const In1<int32_t>& feature, const In1<double>& threshold, const In2<int32_t>& children,
         const In1<int32_t>& root, const In1<int64_t>& leaf_indptr, const In1<int32_t>& leaf_label,
         const In1<float>& leaf_share, int64_t n_features, int64_t n_labels);

  // Of the pairs (row, label) of a CSR pattern.
  Array1<float> score(const In2<float>& X, const In1<int64_t>& indptr, const In1<int32_t>& labels, int n_threads) const;

 private:
  std::vector<TreeNode> nodes_;
  std::vector<int32_t> root_;
  std::vector<int64_t> leaf_indptr_;
  std::vector<int32_t> leaf_label_;
  std::vector<float> leaf_share_;
  int64_t n_features_, n_labels_;
};

}  // namespace metarank
