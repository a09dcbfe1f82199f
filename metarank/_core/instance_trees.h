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
#include "query_rows.h"

namespace metarank {

// Labels re-ranked by s = alpha log P + (1 - alpha) log P_tail (Jain et al. 2016, eq. 8), P their mean value.
struct Reranking {
  const LabelMeanIndex& means;
  TailProbability tail;
  double alpha;
  std::int64_t n_labels;  // a row's best by P; the others are left out
};

// The flat arrays of a forest, as instance_tree_train.h makes them.
struct InstanceTreeViews {
  In1<std::int32_t> roots, child;
  In1<float> bias;
  In1<std::int64_t> weight_start;
  In1<std::int32_t> feature;
  In1<float> weight;
  In1<std::int64_t> leaf_start;
  In1<std::int32_t> leaf_label;
  In1<float> leaf_value;
};

// Arrays stay where they are: they must outlive the forest.
class InstanceTrees {
 public:
  using Lists = std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<float>>;
  using Columns = std::tuple<Array1<float>, std::optional<Array2<float>>>;

  InstanceTrees(std::int64_t n_features, std::int64_t n_labels, const InstanceTreeViews& arrays);

  std::int64_t n_features() const { return n_features_; }
  std::int64_t n_labels() const { return n_labels_; }
  std::int64_t n_trees() const { return static_cast<std::int64_t>(roots_.shape(0)); }
  std::int64_t n_leaves() const { return static_cast<std::int64_t>(leaf_start_.shape(0)) - 1; }

  // (rows, trees): the leaf each row ends in.
  Array2<std::int32_t> leaves(const QueryRows& X, int n_threads) const;

  // The k labels of greatest mean value of each row, ascending; only labels of a value > 0. Re-ranked: those of
  // greatest s, and exp(s) in place of the value.
  Lists top(const QueryRows& X, std::int64_t k, const Reranking* reranking, int n_threads) const;

  // The mean value of each pair (row, label) of a CSR pattern, and where asked for its value in each tree.
  Columns pairs(const QueryRows& X, const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, bool by_tree,
                int n_threads) const;

 private:
  class Worker;
  class WorkerPool;

  static std::shared_ptr<WorkerPool> new_pool();
  std::vector<std::int32_t> leaf_numbers(const QueryRows& X, int n_threads) const;

  std::int64_t n_features_, n_labels_;
  In1<std::int32_t> roots_, child_;
  In1<float> bias_;
  In1<std::int64_t> weight_start_;
  In1<std::int32_t> feature_;
  In1<float> weight_;
  In1<std::int64_t> leaf_start_;
  In1<std::int32_t> leaf_label_;
  In1<float> leaf_value_;
  std::shared_ptr<WorkerPool> pool_;
};

}  // namespace metarank
