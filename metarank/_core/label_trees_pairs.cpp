// Exact scores of given pairs: the edges on the paths to a row's labels, each evaluated once.
#include <algorithm>
#include <memory>

#include "label_trees.h"
#include "scratch_pool.h"
#include "parallel.h"

namespace metarank {

namespace {

constexpr std::int64_t kQueriesPerChunk = 64;
constexpr std::int64_t kPairsPerBlock = 1 << 16;
constexpr std::int64_t kRowsPerBlock = 4096;

// An edge asked for by a query. Sorted by slot, so that parents come before their children.
struct Edge {
  std::int32_t block, query, slot;
  std::int32_t parent, index;  // in the order they were asked for; parent -1 at the root

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
        node_edge_(static_cast<std::size_t>(trees.n_nodes()), -1),
        costs_(static_cast<std::size_t>(kQueriesPerChunk * kMaxBlockSlots)) {}

  void score(const QueryRows& X, std::int64_t begin, std::int64_t end, const std::int64_t* indptr,
             const std::int32_t* labels, PairScores& out) {
    const std::vector<SparseRow>& queries = reader_.read(X, end - begin, [&](std::int64_t i) { return begin + i; });
    const std::int64_t first = indptr[begin], n_pairs = indptr[end] - first, n_trees = trees_.n_trees();
    pair_edge_.resize(static_cast<std::size_t>(n_pairs));
    pair_cost_.resize(static_cast<std::size_t>(n_pairs));
    for (std::int64_t t = 0; t < n_trees; ++t) {
      edges_.clear();
      for (std::int64_t i = begin; i < end; ++i) {
        const auto row_begin = static_cast<std::int32_t>(edges_.size());
        for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p) {
          const std::int32_t slot = trees_.label_slot_[static_cast<std::size_t>(t * trees_.n_labels_ + labels[p])];
          pair_edge_[static_cast<std::size_t>(p - first)] =
              slot < 0 ? -1 : ask(slot, static_cast<std::int32_t>(i - begin), row_begin);
        }
      }
      evaluate(queries);
      for (std::int64_t p = 0; p < n_pairs; ++p) {
        const std::int32_t e = pair_edge_[static_cast<std::size_t>(p)];
        pair_cost_[static_cast<std::size_t>(p)] = e < 0 ? kLargestCost : path_cost_[static_cast<std::size_t>(e)];
      }
      if (!out.per_tree.empty())
        for (std::int64_t p = 0; p < n_pairs; ++p)
          out.per_tree[static_cast<std::size_t>((first + p) * n_trees + t)] =
              -std::min(pair_cost_[static_cast<std::size_t>(p)], kLargestCost);
      probabilities(pair_cost_.data(), n_pairs);
      for (std::int64_t p = 0; p < n_pairs; ++p)
        if (pair_edge_[static_cast<std::size_t>(p)] >= 0)
          out.scores[static_cast<std::size_t>(first + p)] += pair_cost_[static_cast<std::size_t>(p)];
    }
    for (std::int64_t p = first; p < first + n_pairs; ++p)
      out.scores[static_cast<std::size_t>(p)] /= static_cast<float>(n_trees);
  }

 private:
  // The index of the query's edge at a slot, those above it asked for before. The edge into a node is
  // asked for once a row: node_edge_ holds its index, valid from row_begin on.
  std::int32_t ask(std::int32_t slot, std::int32_t query, std::int32_t row_begin) {
    const std::int32_t node = trees_.slot_node_[static_cast<std::size_t>(slot)];
    const std::int32_t parent_slot = trees_.parent_slot_[static_cast<std::size_t>(node)];
    std::int32_t parent = -1;
    if (parent_slot >= 0) {
      std::int32_t& known = node_edge_[static_cast<std::size_t>(node)];
      if (known < row_begin || known >= static_cast<std::int32_t>(edges_.size()) ||
          edges_[static_cast<std::size_t>(known)].slot != parent_slot)
        known = ask(parent_slot, query, row_begin);
      parent = known;
    }
    const auto index = static_cast<std::int32_t>(edges_.size());
    edges_.push_back({trees_.slot_block_[static_cast<std::size_t>(slot)], query, slot, parent, index});
    return index;
  }

  void evaluate(const std::vector<SparseRow>& queries) {
    path_cost_.resize(edges_.size());
    std::sort(edges_.begin(), edges_.end());
    for (std::size_t first = 0; first < edges_.size();) {
      std::size_t last = first;
      while (last < edges_.size() && edges_[last].block == edges_[first].block) ++last;
      if (last < edges_.size())
        scores_.expect(trees_.weights_.view().block(edges_[last].block),
                       queries[static_cast<std::size_t>(edges_[last].query)]);
      evaluate_block(queries, edges_.data() + first, edges_.data() + last);
      first = last;
    }
  }

  void evaluate_block(const std::vector<SparseRow>& queries, const Edge* edge, const Edge* end) {
    const WeightBlocksView& view = trees_.weights_.view();
    std::int64_t n_values = 0;
    for (const Edge* e = edge; e < end; ++e)
      if (e == edge || e[-1].query != e->query) n_values += queries[static_cast<std::size_t>(e->query)].size;
    const std::int64_t first_slot = view.block_slot[edge->block];
    scores_.open(view.block(edge->block), n_values);
    const std::int64_t stride = scores_.stride();
    while (edge < end) {
      const SparseRow* chunk[kQueriesPerChunk];
      std::int64_t m = 0;
      const Edge* stop = edge;
      for (; stop < end; ++stop) {
        if (stop != edge && stop[-1].query == stop->query) continue;
        if (m == kQueriesPerChunk) break;
        chunk[m++] = &queries[static_cast<std::size_t>(stop->query)];
      }
      scores_.margins(chunk, m, costs_.data());
      edge_costs(trees_.link_, costs_.data(), m * stride);
      const float* costs = costs_.data() - stride;
      for (const Edge* e = edge; e < stop; ++e) {
        if (e == edge || e[-1].query != e->query) costs += stride;
        float above = e->parent < 0 ? 0.0f : path_cost_[static_cast<std::size_t>(e->parent)];
        if (trees_.child_.data()[e->slot] < 0) above *= trees_.path_weight_;
        path_cost_[static_cast<std::size_t>(e->index)] =
            above + costs[e->slot - first_slot] + trees_.slot_cost_[static_cast<std::size_t>(e->slot)];
      }
      edge = stop;
    }
    scores_.close();
  }

  const LabelTrees& trees_;
  RowReader reader_;
  BlockScores scores_;
  std::vector<Edge> edges_;
  std::vector<std::int32_t> node_edge_, pair_edge_;
  std::vector<float> costs_, path_cost_, pair_cost_;
};

class LabelTrees::PairsPool : public ScratchPool<Pairs> {};

std::shared_ptr<LabelTrees::PairsPool> LabelTrees::new_pairs_pool() { return std::make_shared<PairsPool>(); }

PairScores LabelTrees::score_pairs(const QueryRows& X, const std::int64_t* indptr, const std::int32_t* labels,
                                   bool per_tree, int n_threads) const {
  PairScores out;
  const auto n_pairs = static_cast<std::size_t>(indptr[X.n_rows]);
  out.scores.assign(n_pairs, 0.0f);
  if (per_tree) out.per_tree.resize(n_pairs * static_cast<std::size_t>(n_trees()));
  if (X.n_rows <= PairsPool::kMostRows && static_cast<std::int64_t>(n_pairs) <= kPairsPerBlock) {
    auto worker = pairs_pool_->take([&] { return std::make_unique<Pairs>(*this); });
    worker->score(X, 0, X.n_rows, indptr, labels, out);
    pairs_pool_->give_back(std::move(worker));
    return out;
  }
  // Blocks of rows of about the same number of pairs.
  const std::int64_t most_pairs = std::min(kPairsPerBlock, static_cast<std::int64_t>(n_pairs) / n_threads + 1);
  std::vector<std::int64_t> start{0};
  for (std::int64_t i = 1; i <= X.n_rows; ++i)
    if (i == X.n_rows || indptr[i + 1] - indptr[start.back()] > most_pairs || i - start.back() == kRowsPerBlock)
      start.push_back(i);
  std::vector<std::unique_ptr<Pairs>> workers(static_cast<std::size_t>(n_threads));
  parallel_for(static_cast<std::int64_t>(start.size()) - 1, n_threads, 1,
               [&](std::int64_t begin, std::int64_t end, int w) {
                 auto& worker = workers[static_cast<std::size_t>(w)];
                 if (!worker) worker = std::make_unique<Pairs>(*this);
                 for (std::int64_t b = begin; b < end; ++b)
                   worker->score(X, start[static_cast<std::size_t>(b)], start[static_cast<std::size_t>(b) + 1], indptr,
                                 labels, out);
               });
  return out;
}

}  // namespace metarank
