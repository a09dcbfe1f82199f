// Pointwise prediction: beam search, tree by tree, for a block of queries at a time.
#include <algorithm>
#include <memory>

#include "label_sums.h"
#include "label_trees.h"
#include "scratch_pool.h"
#include "top_lists.h"
#include "parallel.h"

namespace metarank {

namespace {

constexpr std::int64_t kQueriesPerChunk = 64;   // whose margins are computed together
constexpr std::int64_t kQueriesPerBlock = 4096;
constexpr std::int64_t kBlockBytes = 32 << 20;  // of lists; bounds the queries of a block

// A query at an open node.
struct Visit {
  std::int32_t node, query;
  float cost;

  bool operator<(const Visit& other) const {
    return node != other.node ? node < other.node : query < other.query;
  }
};

}  // namespace

// One worker: its scratch, and the search.
class LabelTrees::Beam {
 public:
  explicit Beam(const LabelTrees& trees)
      : trees_(trees), scores_(trees.n_features()), union_(trees.n_labels()) {}

  void set(std::int64_t beam, std::int64_t k, std::int64_t tree_k) {
    beam_ = beam;
    k_ = k;
    tree_k_ = tree_k;
  }

  // Rows begin .. end of X; a row's k entries are written from k row on, their number to count[row].
  void search(const QueryRows& X, std::int64_t begin, std::int64_t end, ScoredLists& out, std::int64_t* count) {
    const std::int64_t n = end - begin, n_trees = trees_.n_trees();
    const std::vector<SparseRow>& queries = reader_.read(X, n, [&](std::int64_t i) { return begin + i; });
    found_.resize(static_cast<std::size_t>(n * n_trees * tree_k_));
    n_found_.resize(static_cast<std::size_t>(n * n_trees));
    for (std::int64_t t = 0; t < n_trees; ++t) {
      search_tree(queries, trees_.roots_.data()[t]);
      for (std::int64_t q = 0; q < n; ++q) {
        std::int64_t& m = n_found_[static_cast<std::size_t>(q * n_trees + t)];
        const CostKey* best = labels_.best(q, &m);
        std::copy_n(best, m, found_.begin() + (q * n_trees + t) * tree_k_);
      }
    }
    for (std::int64_t q = 0; q < n; ++q) count[begin + q] = merge(q, (begin + q) * k_, out);
  }

 private:
  void search_tree(const std::vector<SparseRow>& queries, std::int32_t root) {
    const auto n = static_cast<std::int64_t>(queries.size());
    labels_.reset(n, tree_k_);
    visits_.clear();
    if (!trees_.empty(root))
      for (std::int64_t q = 0; q < n; ++q) visits_.push_back({root, static_cast<std::int32_t>(q), 0.0f});
    while (!visits_.empty()) {
      open_.reset(n, beam_);
      std::sort(visits_.begin(), visits_.end());
      for (std::size_t first = 0; first < visits_.size();) {
        std::size_t last = first;
        while (last < visits_.size() && visits_[last].node == visits_[first].node) ++last;
        if (last < visits_.size()) expect(queries, visits_[last]);
        expand(queries, visits_.data() + first, static_cast<std::int64_t>(last - first));
        first = last;
      }
      visits_.clear();
      for (std::int64_t q = 0; q < n; ++q) {
        std::int64_t m;
        const CostKey* best = open_.best(q, &m);
        for (std::int64_t i = 0; i < m; ++i) visits_.push_back({best[i].id(), static_cast<std::int32_t>(q), best[i].cost()});
      }
    }
  }

  // The node to come.
  void expect(const std::vector<SparseRow>& queries, const Visit& next) const {
    const WeightBlocksView& view = trees_.weights_.view();
    scores_.expect(view.block(view.node_block[next.node]), queries[static_cast<std::size_t>(next.query)]);
  }

  // All visits of one node.
  void expand(const std::vector<SparseRow>& queries, const Visit* visits, std::int64_t n) {
    const WeightBlocksView& view = trees_.weights_.view();
    std::int64_t n_values = 0;
    for (std::int64_t i = 0; i < n; ++i) n_values += queries[static_cast<std::size_t>(visits[i].query)].size;
    for (std::int64_t b = view.node_block[visits->node]; b < view.node_block[visits->node + 1]; ++b) {
      const WeightBlock block = view.block(b);
      scores_.open(block, n_values);
      for (std::int64_t begin = 0; begin < n; begin += kQueriesPerChunk) {
        const std::int64_t m = std::min(kQueriesPerChunk, n - begin), stride = scores_.stride();
        const SparseRow* chunk[kQueriesPerChunk];
        for (std::int64_t i = 0; i < m; ++i) chunk[i] = &queries[static_cast<std::size_t>(visits[begin + i].query)];
        costs_.resize(static_cast<std::size_t>(kQueriesPerChunk * kMaxBlockSlots));
        scores_.margins(chunk, m, costs_.data());
        edge_costs(trees_.link_, costs_.data(), m * stride);
        for (std::int64_t i = 0; i < m; ++i) push(visits[begin + i], costs_.data() + i * stride, view.block_slot[b], block.n_slots);
      }
      scores_.close();
    }
  }

  void push(const Visit& visit, const float* costs, std::int64_t first_slot, std::int32_t n_slots) {
    const std::int32_t* child = trees_.child_.data() + first_slot;
    const float* own = trees_.slot_cost_.data() + first_slot;
    const float above_label = trees_.path_weight_ * visit.cost;
    for (std::int32_t s = 0, end = 0; s < n_slots; s = end) {  // runs of labels, and of nodes
      const bool labels = child[s] < 0;
      while (end < n_slots && (child[end] < 0) == labels) ++end;
      if (labels)
        labels_.push_all(
            visit.query, end - s, [&](std::int64_t i) { return above_label + costs[s + i] + own[s + i]; },
            [&](std::int64_t i) { return ~child[s + i]; });
      else
        open_.push_all(
            visit.query, end - s, [&](std::int64_t i) { return visit.cost + costs[s + i]; },
            [&](std::int64_t i) { return child[s + i]; });
    }
  }

  // The union of what the trees found: its k labels of greatest mean probability, ascending, to `at`.
  std::int64_t merge(std::int64_t query, std::int64_t at, ScoredLists& out) {
    const std::int64_t n_trees = trees_.n_trees();
    union_.clear();
    for (std::int64_t t = 0; t < n_trees; ++t) {
      const CostKey* found = found_.data() + (query * n_trees + t) * tree_k_;
      const std::int64_t n = n_found_[static_cast<std::size_t>(query * n_trees + t)];
      probabilities_.resize(static_cast<std::size_t>(n));
      for (std::int64_t i = 0; i < n; ++i) probabilities_[static_cast<std::size_t>(i)] = found[i].cost();
      probabilities(probabilities_.data(), n);
      for (std::int64_t i = 0; i < n; ++i) union_.add(found[i].id(), probabilities_[static_cast<std::size_t>(i)]);
    }
    union_.divide(static_cast<float>(n_trees));

    const std::vector<std::int32_t>& best = union_.best(k_);
    const auto n = static_cast<std::int64_t>(best.size());
    std::copy_n(best.begin(), n, out.ids.begin() + at);
    for (std::int64_t i = 0; i < n; ++i)
      out.scores[static_cast<std::size_t>(at + i)] = union_.of(best[static_cast<std::size_t>(i)]);
    if (out.per_tree.empty()) return n;

    std::fill_n(out.per_tree.data() + at * n_trees, n * n_trees, -kLargestCost);
    for (std::int64_t t = 0; t < n_trees; ++t) {
      const CostKey* found = found_.data() + (query * n_trees + t) * tree_k_;
      for (std::int64_t i = 0; i < n_found_[static_cast<std::size_t>(query * n_trees + t)]; ++i) {
        const auto place = std::lower_bound(best.begin(), best.end(), found[i].id());
        if (place != best.end() && *place == found[i].id())
          out.per_tree[static_cast<std::size_t>((at + (place - best.begin())) * n_trees + t)] =
              -std::min(found[i].cost(), kLargestCost);
      }
    }
    return n;
  }

  const LabelTrees& trees_;
  std::int64_t beam_ = 1, k_ = 1, tree_k_ = 1;
  RowReader reader_;
  BlockScores scores_;
  TopLists labels_, open_;
  std::vector<Visit> visits_;
  std::vector<float> costs_, probabilities_;
  LabelSums union_;
  std::vector<CostKey> found_;
  std::vector<std::int64_t> n_found_;
};

class LabelTrees::BeamPool : public ScratchPool<Beam> {};

std::shared_ptr<LabelTrees::BeamPool> LabelTrees::new_pool() { return std::make_shared<BeamPool>(); }

ScoredLists LabelTrees::beam(const QueryRows& X, const BeamOptions& options, int n_threads) const {
  const std::int64_t beam = std::min(options.beam, std::max<std::int64_t>(1, n_nodes()));
  const std::int64_t tree_k = std::min(options.tree_k, std::max<std::int64_t>(1, n_labels_));
  const std::int64_t k = std::min(options.k, std::max<std::int64_t>(1, n_labels_));
  const std::int64_t list_entries = TopLists::capacity(beam) + TopLists::capacity(tree_k) + n_trees() * tree_k;
  const std::int64_t block = std::clamp<std::int64_t>(
      kBlockBytes / (static_cast<std::int64_t>(sizeof(CostKey)) * list_entries), 1,
      std::min(kQueriesPerBlock, X.n_rows / n_threads + 1));

  ScoredLists out;
  std::vector<std::int64_t> count(static_cast<std::size_t>(X.n_rows), 0);
  out.ids.resize(static_cast<std::size_t>(X.n_rows * k));
  out.scores.resize(out.ids.size());
  if (options.per_tree) out.per_tree.resize(out.ids.size() * static_cast<std::size_t>(n_trees()));
  if (X.n_rows <= BeamPool::kMostRows && block >= X.n_rows) {
    auto worker = pool_->take([&] { return std::make_unique<Beam>(*this); });
    worker->set(beam, k, tree_k);
    worker->search(X, 0, X.n_rows, out, count.data());
    pool_->give_back(std::move(worker));
    out.close_gaps(count, k, options.per_tree ? n_trees() : 0);
    return out;
  }
  std::vector<std::unique_ptr<Beam>> workers(static_cast<std::size_t>(n_threads));
  parallel_for(X.n_rows, n_threads, block, [&](std::int64_t begin, std::int64_t end, int w) {
    auto& worker = workers[static_cast<std::size_t>(w)];
    if (!worker) {
      worker = std::make_unique<Beam>(*this);
      worker->set(beam, k, tree_k);
    }
    worker->search(X, begin, end, out, count.data());
  });
  out.close_gaps(count, k, options.per_tree ? n_trees() : 0);
  return out;
}

}  // namespace metarank
