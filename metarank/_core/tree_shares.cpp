#include "boosted_trees.h"

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "parallel.h"
#include "tree_walk.h"

namespace metarank {

namespace {

// The walk is a recursion whose memory grows with the square of the depth.
constexpr int kDeepest = 1024;

// A feature that the path has split on. `zero` and `one`: the shares of the rows without and with it that come this
// way; `weight`: of the subsets of features of one size.
struct Step {
  int32_t feature;
  double zero, one, weight;
};

void extend(Step* path, int depth, double zero, double one, int32_t feature) {
  path[depth] = {feature, zero, one, depth == 0 ? 1.0 : 0.0};
  for (int i = depth - 1; i >= 0; --i) {
    path[i + 1].weight += one * path[i].weight * (i + 1) / static_cast<double>(depth + 1);
    path[i].weight = zero * path[i].weight * (depth - i) / static_cast<double>(depth + 1);
  }
}

// The path as if step `at` had never been.
void unwind(Step* path, int depth, int at) {
  const double one = path[at].one, zero = path[at].zero;
  double next = path[depth].weight;
  for (int i = depth - 1; i >= 0; --i) {
    if (one != 0) {
      const double before = path[i].weight;
      path[i].weight = next * (depth + 1) / ((i + 1) * one);
      next = before - path[i].weight * zero * (depth - i) / static_cast<double>(depth + 1);
    } else {
      path[i].weight = path[i].weight * (depth + 1) / (zero * (depth - i));
    }
  }
  for (int i = at; i < depth; ++i) {
    path[i].feature = path[i + 1].feature;
    path[i].zero = path[i + 1].zero;
    path[i].one = path[i + 1].one;
  }
}

double sum_unwound(const Step* path, int depth, int at) {
  const double one = path[at].one, zero = path[at].zero;
  double next = path[depth].weight, total = 0;
  for (int i = depth - 1; i >= 0; --i) {
    if (one != 0) {
      const double part = next * (depth + 1) / ((i + 1) * one);
      total += part;
      next = path[i].weight - part * zero * ((depth - i) / static_cast<double>(depth + 1));
    } else {
      total += path[i].weight / zero / ((depth - i) / static_cast<double>(depth + 1));
    }
  }
  return total;
}

template <typename T>
struct Walk {
  const CountedTrees& trees;
  const TreeNode* nodes;
  const T* x;
  double* shares;

  double count(int32_t at) const { return at >= 0 ? trees.node_count(at) : trees.leaf_count(~at); }

  // `before` holds `depth` steps, and behind them is room for those of this node and of all below it.
  void go(int32_t at, int depth, Step* before, double zero, double one, int32_t feature) const {
    Step* path = before + depth;
    std::copy(before, before + depth, path);
    extend(path, depth, zero, one, feature);
    if (at < 0) {
      for (int i = 1; i <= depth; ++i)
        shares[path[i].feature] += sum_unwound(path, depth, i) * (path[i].one - path[i].zero) * trees.leaf_value(~at);
      return;
    }
    const TreeNode& node = nodes[at];
    const bool right = goes_right_missing(node, static_cast<double>(x[node.feature]));
    const int32_t hot = node.child[right], cold = node.child[!right];
    const double rows = count(at);
    double zero_before = 1, one_before = 1;
    // A feature that the path knows is split anew.
    const Step* known = std::find_if(path, path + depth + 1, [&](const Step& s) { return s.feature == node.feature; });
    if (known != path + depth + 1) {
      zero_before = known->zero;
      one_before = known->one;
      unwind(path, depth, static_cast<int>(known - path));
      --depth;
    }
    go(hot, depth + 1, path, count(hot) / rows * zero_before, one_before, node.feature);
    go(cold, depth + 1, path, count(cold) / rows * zero_before, 0, node.feature);
  }
};

// Of the deepest leaf; every node is a child once at most.
int checked_depth(const std::vector<TreeNode>& nodes) {
  std::vector<int> depth(nodes.size(), 0);
  std::vector<bool> is_child(nodes.size(), false);
  int deepest = 0;
  for (size_t i = 0; i < nodes.size(); ++i) {
    deepest = std::max(deepest, depth[i] + 1);
    for (const int32_t child : nodes[i].child) {
      if (child < 0) continue;
      const auto c = static_cast<size_t>(child);
      require(!is_child[c], "a node must be a child once");
      is_child[c] = true;
      depth[c] = depth[i] + 1;
    }
  }
  require(deepest <= kDeepest, "a tree must be at most " + std::to_string(kDeepest) + " deep");
  return deepest;
}

// Mean of a tree's leaves over the rows that reached them; leaves of a tree follow those of the one before.
std::vector<double> expected_scores(const CountedTrees& trees, const std::vector<TreeNode>& nodes) {
  std::vector<double> expected(trees.root.size(), 0.0);
  for (size_t t = 0; t < expected.size(); ++t) {
    const int32_t root = trees.root(t);
    if (root < 0) {
      expected[t] = trees.leaf_value(~root);
      continue;
    }
    std::vector<int32_t> leaves, waiting{root};
    while (!waiting.empty()) {
      const TreeNode& node = nodes[waiting.back()];
      waiting.pop_back();
      for (const int32_t child : node.child) (child < 0 ? leaves : waiting).push_back(child < 0 ? ~child : child);
    }
    std::sort(leaves.begin(), leaves.end());
    const double rows = trees.node_count(root);
    for (const int32_t leaf : leaves) expected[t] += trees.leaf_count(leaf) / rows * trees.leaf_value(leaf);
  }
  return expected;
}

}  // namespace

template <typename T>
Array2<double> tree_shares(const CountedTrees& trees, const In2<T>& X, int n_threads) {
  const size_t n = X.shape(0), d = X.shape(1), width = d + 1;
  require(trees.node_count.size() == trees.feature.size(), "node_count must have an entry a node");
  require(trees.leaf_count.size() == trees.leaf_value.size(), "leaf_count must have an entry a leaf");
  const std::vector<TreeNode> nodes =
      checked_nodes(trees.feature, trees.threshold, trees.children, &trees.missing, trees.root,
                    static_cast<int64_t>(d), static_cast<int64_t>(trees.leaf_value.size()));
  const auto longest = static_cast<size_t>(checked_depth(nodes)) + 1;
  const std::vector<double> expected = expected_scores(trees, nodes);
  std::vector<double> out(n * width, 0.0);
  std::vector<std::vector<Step>> room(static_cast<size_t>(std::max(1, n_threads)));
  parallel_for(static_cast<int64_t>(n), n_threads, 1, [&](int64_t begin, int64_t end, int worker) {
    std::vector<Step>& steps = room[worker];
    steps.resize(longest * (longest + 1) / 2);
    for (int64_t i = begin; i < end; ++i) {
      double* shares = out.data() + static_cast<size_t>(i) * width;
      const Walk<T> walk{trees, nodes.data(), X.data() + static_cast<size_t>(i) * d, shares};
      for (size_t t = 0; t < trees.root.size(); ++t) {
        shares[d] += expected[t];
        if (trees.root(t) >= 0) walk.go(trees.root(t), 0, steps.data(), 1, 1, -1);
      }
    }
  });
  return to_array(std::move(out), n, width);
}

template Array2<double> tree_shares(const CountedTrees&, const In2<float>&, int);
template Array2<double> tree_shares(const CountedTrees&, const In2<double>&, int);

}  // namespace metarank
