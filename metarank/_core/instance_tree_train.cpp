#include "instance_tree_train.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "instance_tree_split.h"
#include "rng.h"
#include "parallel.h"

namespace metarank {

namespace {

// Nodes in preorder. A child >= 0 is a node, else ~child a leaf; a tree of one leaf has no node.
struct Tree {
  std::vector<int32_t> child;  // (nodes, 2): negative margin, positive margin
  std::vector<float> bias;
  std::vector<int64_t> weight_end;
  std::vector<int32_t> feature;
  std::vector<float> weight;
  std::vector<int64_t> leaf_end;
  std::vector<int32_t> leaf_label;
  std::vector<float> leaf_value;
};

class Grower {
 public:
  Grower(const RankedRows& data, const SplitOptions& split, const GrowOptions& grow)
      : data_(data), grow_(grow), split_(data, split), sum_(static_cast<size_t>(data.n_labels), 0.0) {}

  void grow(uint64_t seed, Tree& tree) {
    const auto n = static_cast<size_t>(data_.n_rows);
    rows_.resize(n);
    for (size_t i = 0; i < n; ++i) rows_[i] = static_cast<int32_t>(i);
    struct Open {
      int64_t begin, end, depth;
      int32_t slot;  // of `child`; -1 for the root
    };
    std::vector<Open> open{{0, data_.n_rows, 0, -1}};
    while (!open.empty()) {
      const Open at = open.back();
      open.pop_back();
      const int64_t size = at.end - at.begin;
      const int32_t* rows = rows_.data() + at.begin;
      const auto node = static_cast<int32_t>(tree.bias.size());
      const bool parted = size > grow_.max_leaf && at.depth < grow_.max_depth &&
                          split_.learn(rows, size, hash_pair(seed, static_cast<uint64_t>(node)));
      if (!parted) {
        const auto leaf = static_cast<int32_t>(tree.leaf_end.size());
        if (at.slot >= 0) tree.child[at.slot] = ~leaf;
        add_leaf(rows, size, tree);
        continue;
      }
      if (at.slot >= 0) tree.child[at.slot] = node;
      tree.child.insert(tree.child.end(), 2, 0);
      tree.bias.push_back(split_.bias());
      tree.feature.insert(tree.feature.end(), split_.features().begin(), split_.features().end());
      tree.weight.insert(tree.weight.end(), split_.weights().begin(), split_.weights().end());
      tree.weight_end.push_back(static_cast<int64_t>(tree.feature.size()));
      const int64_t middle = at.begin + part(at.begin, at.end);
      open.push_back({middle, at.end, at.depth + 1, 2 * node + 1});
      open.push_back({at.begin, middle, at.depth + 1, 2 * node});
    }
  }

 private:
  // Rows of a negative margin first, both in their order; returns how many they are.
  int64_t part(int64_t begin, int64_t end) {
    const std::vector<uint8_t>& right = split_.right();
    moved_.clear();
    int64_t to = begin;
    for (int64_t i = begin; i < end; ++i) {
      const int32_t row = rows_[i];
      if (right[i - begin] != 0)
        moved_.push_back(row);
      else
        rows_[to++] = row;
    }
    std::copy(moved_.begin(), moved_.end(), rows_.begin() + to);
    return to - begin;
  }

  // The labels' mean relevances over the rows; the greatest of them, ascending labels.
  void add_leaf(const int32_t* rows, int64_t n, Tree& tree) {
    met_.clear();
    double total = 0.0;
    for (int64_t i = 0; i < n; ++i) {
      const auto weight = static_cast<double>(data_.weight[rows[i]]);
      total += weight;
      for (int64_t p = data_.Y.indptr[rows[i]]; p < data_.Y.indptr[rows[i] + 1]; ++p) {
        double& sum = sum_[data_.Y.indices[p]];
        if (sum == 0.0) met_.push_back(data_.Y.indices[p]);
        sum += weight * static_cast<double>(data_.Y.data[p]);
      }
    }
    const auto value = [&](int32_t l) { return static_cast<float>(sum_[l] / total); };
    const size_t n_met = met_.size();
    size_t kept = n_met;
    if (static_cast<int64_t>(n_met) > grow_.labels_per_leaf) {
      kept = static_cast<size_t>(grow_.labels_per_leaf);
      std::nth_element(met_.begin(), met_.begin() + static_cast<std::ptrdiff_t>(kept), met_.end(),
                       [&](int32_t a, int32_t b) {
                         const float x = value(a), y = value(b);
                         return x > y || (x == y && a < b);
                       });
    }
    std::sort(met_.begin(), met_.begin() + static_cast<std::ptrdiff_t>(kept));
    for (size_t i = 0; i < kept; ++i) {
      tree.leaf_label.push_back(met_[i]);
      tree.leaf_value.push_back(value(met_[i]));
    }
    for (const int32_t label : met_) sum_[label] = 0.0;
    tree.leaf_end.push_back(static_cast<int64_t>(tree.leaf_label.size()));
  }

  const RankedRows& data_;
  GrowOptions grow_;
  InstanceSplit split_;
  std::vector<int32_t> rows_, moved_, met_;
  std::vector<double> sum_;
};

// The trees one behind the other, each given back as soon as it is copied.
InstanceTreeArrays to_arrays(std::vector<Tree>& trees) {
  size_t n_nodes = 0, n_leaves = 0, n_weights = 0, n_values = 0;
  for (const Tree& tree : trees) {
    n_nodes += tree.bias.size();
    n_leaves += tree.leaf_end.size();
    n_weights += tree.weight.size();
    n_values += tree.leaf_value.size();
  }
  require(n_nodes < (1u << 30) && n_leaves < (1u << 30), "a forest has fewer than 2^30 nodes");
  std::vector<int32_t> roots, child, feature, leaf_label;
  std::vector<int64_t> weight_start{0}, leaf_start{0};
  std::vector<float> bias, weight, leaf_value;
  roots.reserve(trees.size());
  child.reserve(2 * n_nodes);
  bias.reserve(n_nodes);
  weight_start.reserve(n_nodes + 1);
  feature.reserve(n_weights);
  weight.reserve(n_weights);
  leaf_start.reserve(n_leaves + 1);
  leaf_label.reserve(n_values);
  leaf_value.reserve(n_values);
  for (Tree& tree : trees) {
    const auto first_node = static_cast<int32_t>(bias.size());
    const auto first_leaf = static_cast<int32_t>(leaf_start.size()) - 1;
    const int64_t first_weight = weight_start.back(), first_value = leaf_start.back();
    roots.push_back(tree.bias.empty() ? ~first_leaf : first_node);
    for (const int32_t c : tree.child) child.push_back(c >= 0 ? c + first_node : ~(~c + first_leaf));
    for (const int64_t end : tree.weight_end) weight_start.push_back(first_weight + end);
    for (const int64_t end : tree.leaf_end) leaf_start.push_back(first_value + end);
    bias.insert(bias.end(), tree.bias.begin(), tree.bias.end());
    feature.insert(feature.end(), tree.feature.begin(), tree.feature.end());
    weight.insert(weight.end(), tree.weight.begin(), tree.weight.end());
    leaf_label.insert(leaf_label.end(), tree.leaf_label.begin(), tree.leaf_label.end());
    leaf_value.insert(leaf_value.end(), tree.leaf_value.begin(), tree.leaf_value.end());
    tree = Tree();
  }
  return {std::move(roots),  std::move(child),      std::move(bias),       std::move(weight_start), std::move(feature),
          std::move(weight), std::move(leaf_start), std::move(leaf_label), std::move(leaf_value)};
}

RankedRows require_ranked_rows(const CsrView& X, const CsrView& Y, const In1<float>& row_weight) {
  const auto n = static_cast<int64_t>(X.indptr.shape(0)) - 1;
  require(X.n_columns >= 0 && Y.n_columns >= 0, "n_features and n_labels must not be negative");
  require(n >= 0 && n < std::numeric_limits<int32_t>::max(), "X must have fewer than 2^31 rows");
  const RankedRows rows{require_csr(X), require_csr(Y), row_weight.data(), n, X.n_columns, Y.n_columns};
  require(Y.indptr.shape(0) == X.indptr.shape(0), "Y must have a row for each row of X");
  require(row_weight.shape(0) == static_cast<size_t>(n), "row_weight must have one entry a row");
  for (size_t i = 0; i < row_weight.shape(0); ++i)
    require(row_weight(i) > 0 && std::isfinite(row_weight(i)), "row_weight must be positive and finite");
  for (size_t p = 0; p < Y.data.shape(0); ++p)
    require(Y.data(p) > 0 && std::isfinite(Y.data(p)), "Y must hold positive finite values");
  for (size_t p = 0; p < X.data.shape(0); ++p) require(std::isfinite(X.data(p)), "X must be finite");
  return rows;
}

}  // namespace

InstanceTreeArrays train_instance_trees(const CsrView& X, const CsrView& Y, const In1<float>& row_weight,
                                        const SplitOptions& split, const GrowOptions& grow, int n_threads) {
  const RankedRows rows = require_ranked_rows(X, Y, row_weight);
  std::vector<Tree> trees(static_cast<size_t>(grow.n_trees));
  std::vector<std::unique_ptr<Grower>> growers(static_cast<size_t>(n_threads));
  parallel_for(grow.n_trees, n_threads, 1, [&](int64_t begin, int64_t end, int worker) {
    auto& grower = growers[worker];
    if (!grower) grower = std::make_unique<Grower>(rows, split, grow);
    for (int64_t t = begin; t < end; ++t) grower->grow(hash_pair(grow.seed, static_cast<uint64_t>(t)), trees[t]);
  });
  return to_arrays(trees);
}

}  // namespace metarank
