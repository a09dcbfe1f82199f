// A forest of instance trees, ready for prediction: a point goes down every tree by the signs of its margins,
// and the label values of the leaves it ends in are averaged.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "label_mean_index.h"
#include "sparse_rows.h"

namespace metarank {

// Labels re-ranked by s = alpha log P + (1 - alpha) log P_tail (Jain et al. 2016, eq. 8), P their mean value.
struct Reranking {
  const LabelMeanIndex& means;
  TailProbability tail;
  double alpha;
};

// The flat arrays of a forest, as instance_tree_train.h makes them.
struct InstanceTreeViews {
  Ids roots, child;
  Values bias;
  Indptr weight_start;
  Ids feature;
  Values weight;
  Indptr leaf_start;
  Ids leaf_label;
  Values leaf_value;
};

// Arrays stay where they are: they must outlive the forest.
class InstanceTrees {
 public:
  InstanceTrees(int64_t n_features, int64_t n_labels, const InstanceTreeViews& arrays);

  int64_t n_features() const { return n_features_; }
  int64_t n_labels() const { return n_labels_; }
  int64_t n_trees() const { return static_cast<int64_t>(of_.roots.shape(0)); }
  int64_t n_leaves() const { return static_cast<int64_t>(of_.leaf_start.shape(0)) - 1; }

  // The k labels of greatest mean value of each row, ascending; only labels of a value > 0. Re-ranked: those of
  // greatest s, and exp(s) in place of the value.
  LabelLists top(const CsrView& X, int64_t k, const Reranking* reranking, int n_threads) const;

  // The mean value of each pair (row, label) of a CSR pattern.
  Array1<float> pairs(const CsrView& X, Indptr indptr, Ids labels, int n_threads) const;

 private:
  class Worker;
  class WorkerPool;

  int64_t n_features_, n_labels_;
  InstanceTreeViews of_;
  std::shared_ptr<WorkerPool> pool_;
};

}  // namespace metarank
