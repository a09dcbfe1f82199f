// Exact scores of given pairs: the edges on the paths to a row's labels, each evaluated once.
#include <algorithm>
#include <memory>

#include "label_trees.h"
#include "scratch_pool.h"
#include "parallel.h"

namespace metarank {

namespace {

constexpr int64_t kQueriesPerChunk = 64;
constexpr int64_t kPairsPerBlock = 1 << 16;
constexpr int64_t kRowsPerBlock = 4096;

// An edge asked for by a query. Sorted by slot, so that parents come before their children.
struct Edge {
  int32_t block, query, slot;
  int32_t parent, index;  // in the order they were asked for; parent -1 at the root

  bool operator<(const Edge& other) const {
    if (block != other.block) return block < other.block;
    return query != other.query ? query < other.query : slot < other.slot;
  }
};

}  // namespace

class LabelTrees::Pairs {
 public:
  explicit Pairs(const LabelTrees& trees)
      : trees_(trees),
        scores_(trees.n_features()),
        node_edge_(static_cast<size_t>(trees.n_nodes()), -1),
        costs_(static_cast<size_t>(kQueriesPerChunk * kMaxBlockSlots)) {}

  // Adds to `mean` and, if it is not empty, fills `per_tree`.
  void score(const SparseRows& X, int64_t begin, int64_t end, const Indptr& indptr, const Ids& labels,
             std::vector<float>& mean, std::vector<float>& per_tree) {
    queries_.clear();
    for (int64_t i = begin; i < end; ++i) queries_.push_back(X.row(i));
    const int64_t first = indptr(begin), n_pairs = indptr(end) - first, n_trees = trees_.n_trees();
    pair_edge_.resize(static_cast<size_t>(n_pairs));
    pair_cost_.resize(static_cast<size_t>(n_pairs));
    for (int64_t t = 0; t < n_trees; ++t) {
      edges_.clear();
      for (int64_t i = begin; i < end; ++i) {
        const auto row_begin = static_cast<int32_t>(edges_.size());
        for (int64_t p = indptr(i); p < indptr(i + 1); ++p) {
          const int32_t slot = trees_.label_slot_[t * trees_.n_labels_ + labels(p)];
          pair_edge_[p - first] = slot < 0 ? -1 : ask(slot, static_cast<int32_t>(i - begin), row_begin);
        }
      }
      evaluate();
      for (int64_t p = 0; p < n_pairs; ++p) {
        const int32_t e = pair_edge_[p];
        pair_cost_[p] = e < 0 ? kLargestCost : path_cost_[e];
      }
      if (!per_tree.empty())
        for (int64_t p = 0; p < n_pairs; ++p)
          per_tree[(first + p) * n_trees + t] = -std::min(pair_cost_[p], kLargestCost);
      probabilities(pair_cost_.data(), n_pairs);
      for (int64_t p = 0; p < n_pairs; ++p)
        if (pair_edge_[p] >= 0) mean[first + p] += pair_cost_[p];
    }
    for (int64_t p = first; p < first + n_pairs; ++p) mean[p] /= static_cast<float>(n_trees);
  }

 private:
  // The index of the query's edge at a slot, those above it asked for before. The edge into a node is
  // asked for once a row: node_edge_ holds its index, valid from row_begin on.
  int32_t ask(int32_t slot, int32_t query, int32_t row_begin) {
    const int32_t node = trees_.slot_node_[slot];
    const int32_t parent_slot = trees_.parent_slot_[node];
    int32_t parent = -1;
    if (parent_slot >= 0) {
      int32_t& known = node_edge_[node];
      if (known < row_begin || known >= static_cast<int32_t>(edges_.size()) || edges_[known].slot != parent_slot)
        known = ask(parent_slot, query, row_begin);
      parent = known;
    }
    const auto index = static_cast<int32_t>(edges_.size());
    edges_.push_back({trees_.slot_block_[slot], query, slot, parent, index});
    return index;
  }

  void evaluate() {
    path_cost_.resize(edges_.size());
    std::sort(edges_.begin(), edges_.end());
    for (size_t first = 0; first < edges_.size();) {
      size_t last = first;
      while (last < edges_.size() && edges_[last].block == edges_[first].block) ++last;
      if (last < edges_.size())
        scores_.expect(trees_.weights_.view().block(edges_[last].block), queries_[edges_[last].query]);
      evaluate_block(edges_.data() + first, edges_.data() + last);
      first = last;
    }
  }

  void evaluate_block(const Edge* edge, const Edge* end) {
    const WeightBlocksView& view = trees_.weights_.view();
    int64_t n_values = 0;
    for (const Edge* e = edge; e < end; ++e)
      if (e == edge || e[-1].query != e->query) n_values += queries_[e->query].size;
    const int64_t first_slot = view.block_slot[edge->block];
    scores_.open(view.block(edge->block), n_values);
    const int64_t stride = scores_.stride();
    while (edge < end) {
      const SparseRow* chunk[kQueriesPerChunk];
      int64_t m = 0;
      const Edge* stop = edge;
      for (; stop < end; ++stop) {
        if (stop != edge && stop[-1].query == stop->query) continue;
        if (m == kQueriesPerChunk) break;
        chunk[m++] = &queries_[stop->query];
      }
      scores_.margins(chunk, m, costs_.data());
      edge_costs(trees_.link_, costs_.data(), m * stride);
      const float* costs = costs_.data() - stride;
      for (const Edge* e = edge; e < stop; ++e) {
        if (e == edge || e[-1].query != e->query) costs += stride;
        float above = e->parent < 0 ? 0.0f : path_cost_[e->parent];
        if (trees_.child_.data()[e->slot] < 0) above *= trees_.path_weight_;
        path_cost_[e->index] = above + costs[e->slot - first_slot] + trees_.slot_cost_[e->slot];
      }
      edge = stop;
    }
    scores_.close();
  }

  const LabelTrees& trees_;
  std::vector<SparseRow> queries_;
  BlockScores scores_;
  std::vector<Edge> edges_;
  std::vector<int32_t> node_edge_, pair_edge_;
  std::vector<float> costs_, path_cost_, pair_cost_;
};

class LabelTrees::PairsPool : public ScratchPool<Pairs> {};

std::shared_ptr<LabelTrees::PairsPool> LabelTrees::new_pairs_pool() { return std::make_shared<PairsPool>(); }

TreeColumns LabelTrees::score_pairs(const CsrView& view, Indptr indptr, Ids labels, bool per_tree, int n_threads) const {
  const SparseRows X = require_rows(view, n_features());
  require_pairs(indptr, labels, X.n_rows, n_labels_);
  const size_t n_pairs = labels.shape(0);
  std::vector<float> mean(n_pairs, 0.0f), by_tree(per_tree ? n_pairs * n_trees() : 0);
  // Blocks of rows of about the same number of pairs.
  const int64_t most_pairs = std::min(kPairsPerBlock, static_cast<int64_t>(n_pairs) / n_threads + 1);
  std::vector<int64_t> start{0};
  for (int64_t i = 1; i <= X.n_rows; ++i)
    if (i == X.n_rows || indptr(i + 1) - indptr(start.back()) > most_pairs || i - start.back() == kRowsPerBlock)
      start.push_back(i);
  parallel_for(static_cast<int64_t>(start.size()) - 1, n_threads, 1, [&](int64_t b, int64_t, int) {
    pairs_pool_->take(*this)->score(X, start[b], start[b + 1], indptr, labels, mean, by_tree);
  });
  std::optional<Array2<float>> columns;
  if (per_tree) columns = to_array(std::move(by_tree), n_pairs, n_trees());
  return {to_array(std::move(mean)), std::move(columns)};
}

}  // namespace metarank
