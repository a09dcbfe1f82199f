// Pointwise prediction: beam search, tree by tree, for a block of queries at a time.
#include <algorithm>
#include <memory>

#include "label_sums.h"
#include "label_trees.h"
#include "scratch_pool.h"
#include "parallel.h"
#include "tree_search.h"

namespace metarank {

namespace {

constexpr int64_t kQueriesPerBlock = 4096;
constexpr int64_t kBlockBytes = 32 << 20;  // of lists; bounds the queries of a block

// Lists of at most k entries, stored k apart; the i-th has count[i]. By tree (entries, trees), or nothing.
struct GappedLists {
  std::vector<int64_t> count, indptr{0};
  std::vector<int32_t> ids;
  std::vector<float> scores, per_tree;

  GappedLists(int64_t n, int64_t k, int64_t n_columns)
      : count(n, 0), ids(n * k), scores(n * k), per_tree(n * k * n_columns) {}

  // Moved together.
  void close_gaps(int64_t k, int64_t n_columns) {
    for (size_t i = 0; i < count.size(); ++i) {
      const int64_t from = i * k, to = indptr.back(), n = count[i];
      if (from != to) {
        std::copy_n(ids.begin() + from, n, ids.begin() + to);
        std::copy_n(scores.begin() + from, n, scores.begin() + to);
        std::copy_n(per_tree.begin() + from * n_columns, n * n_columns, per_tree.begin() + to * n_columns);
      }
      indptr.push_back(to + n);
    }
    ids.resize(indptr.back());
    scores.resize(indptr.back());
    per_tree.resize(indptr.back() * n_columns);
  }
};

}  // namespace

// One worker: its scratch, and the search.
class LabelTrees::Beam {
 public:
  explicit Beam(const LabelTrees& trees) : trees_(trees), search_(trees.n_features()), union_(trees.n_labels()) {}

  void set(int64_t beam, int64_t k, int64_t tree_k) {
    beam_ = beam;
    k_ = k;
    tree_k_ = tree_k;
  }

  // Rows begin .. end of X; a row's k entries are written from k row on, their number to count[row].
  void search(const SparseRows& X, int64_t begin, int64_t end, GappedLists& out) {
    const int64_t n = end - begin, n_trees = trees_.n_trees();
    queries_.clear();
    for (int64_t i = begin; i < end; ++i) queries_.push_back(X.row(i));
    found_.resize(static_cast<size_t>(n * n_trees * tree_k_));
    n_found_.resize(static_cast<size_t>(n * n_trees));
    for (int64_t t = 0; t < n_trees; ++t) {
      labels_.reset(n, tree_k_);
      search_.run(
          queries_, trees_.roots_(t), beam_, trees_.link_, trees_.weights_.view(),
          [&](const Visit& visit) { return !trees_.empty(visit.node); },
          [&](TopLists& open, const Visit& visit, const float* costs, int64_t first_slot, int32_t n_slots) {
            push(open, visit, costs, first_slot, n_slots);
          });
      for (int64_t q = 0; q < n; ++q) {
        int64_t& m = n_found_[q * n_trees + t];
        const CostKey* best = labels_.best(q, &m);
        std::copy_n(best, m, found_.begin() + (q * n_trees + t) * tree_k_);
      }
    }
    for (int64_t q = 0; q < n; ++q) out.count[begin + q] = merge(q, (begin + q) * k_, out);
  }

 private:
  void push(TopLists& open, const Visit& visit, const float* costs, int64_t first_slot, int32_t n_slots) {
    const int32_t* child = trees_.child_.data() + first_slot;
    const float* own = trees_.slot_cost_.data() + first_slot;
    const float above_label = trees_.path_weight_ * visit.cost;
    for (int32_t s = 0, end = 0; s < n_slots; s = end) {  // runs of labels, and of nodes
      const bool labels = child[s] < 0;
      while (end < n_slots && (child[end] < 0) == labels) ++end;
      if (labels)
        labels_.push_all(
            visit.row, end - s, [&](int64_t i) { return above_label + costs[s + i] + own[s + i]; },
            [&](int64_t i) { return ~child[s + i]; });
      else
        open.push_all(
            visit.row, end - s, [&](int64_t i) { return visit.cost + costs[s + i]; },
            [&](int64_t i) { return child[s + i]; });
    }
  }

  // The union of what the trees found: its k labels of greatest mean probability, ascending, to `at`.
  int64_t merge(int64_t query, int64_t at, GappedLists& out) {
    const int64_t n_trees = trees_.n_trees();
    union_.clear();
    for (int64_t t = 0; t < n_trees; ++t) {
      const CostKey* found = found_.data() + (query * n_trees + t) * tree_k_;
      const int64_t n = n_found_[query * n_trees + t];
      probabilities_.resize(static_cast<size_t>(n));
      for (int64_t i = 0; i < n; ++i) probabilities_[i] = found[i].cost();
      probabilities(probabilities_.data(), n);
      for (int64_t i = 0; i < n; ++i) union_.add(found[i].id(), probabilities_[i]);
    }
    union_.divide(static_cast<float>(n_trees));

    const std::vector<int32_t>& best = union_.best(k_);
    const auto n = static_cast<int64_t>(best.size());
    std::copy_n(best.begin(), n, out.ids.begin() + at);
    for (int64_t i = 0; i < n; ++i) out.scores[at + i] = union_.of(best[i]);
    if (out.per_tree.empty()) return n;

    std::fill_n(out.per_tree.data() + at * n_trees, n * n_trees, -kLargestCost);
    for (int64_t t = 0; t < n_trees; ++t) {
      const CostKey* found = found_.data() + (query * n_trees + t) * tree_k_;
      for (int64_t i = 0; i < n_found_[query * n_trees + t]; ++i) {
        const auto place = std::lower_bound(best.begin(), best.end(), found[i].id());
        if (place != best.end() && *place == found[i].id())
          out.per_tree[(at + (place - best.begin())) * n_trees + t] = -std::min(found[i].cost(), kLargestCost);
      }
    }
    return n;
  }

  const LabelTrees& trees_;
  int64_t beam_ = 1, k_ = 1, tree_k_ = 1;
  std::vector<SparseRow> queries_;
  TreeSearch search_;
  TopLists labels_;
  std::vector<float> probabilities_;
  LabelSums union_;
  std::vector<CostKey> found_;
  std::vector<int64_t> n_found_;
};

class LabelTrees::BeamPool : public ScratchPool<Beam> {};

std::shared_ptr<LabelTrees::BeamPool> LabelTrees::new_pool() { return std::make_shared<BeamPool>(); }

TreeLists LabelTrees::beam(const CsrView& view, int64_t width, int64_t k, int64_t tree_k, bool per_tree,
                           int n_threads) const {
  require(width >= 1, "beam must be positive");
  require(k >= 1, "k must be positive");
  require(tree_k >= k, "tree_k must be at least k");
  const SparseRows X = require_rows(view, n_features());
  const int64_t beam = std::min(width, std::max<int64_t>(1, n_nodes()));
  tree_k = std::min(tree_k, std::max<int64_t>(1, n_labels_));
  k = std::min(k, std::max<int64_t>(1, n_labels_));
  const int64_t list_entries = TopLists::capacity(beam) + TopLists::capacity(tree_k) + n_trees() * tree_k;
  const int64_t block = std::clamp<int64_t>(kBlockBytes / (static_cast<int64_t>(sizeof(CostKey)) * list_entries), 1,
                                            std::min(kQueriesPerBlock, X.n_rows / n_threads + 1));

  const int64_t n_columns = per_tree ? n_trees() : 0;
  GappedLists out(X.n_rows, k, n_columns);
  parallel_for(X.n_rows, n_threads, block, [&](int64_t begin, int64_t end, int) {
    const auto worker = pool_->take(*this);
    worker->set(beam, k, tree_k);
    worker->search(X, begin, end, out);
  });
  out.close_gaps(k, n_columns);
  const size_t m = out.ids.size();
  std::optional<Array2<float>> columns;
  if (per_tree) columns = to_array(std::move(out.per_tree), m, n_trees());
  return {to_array(std::move(out.indptr)), to_array(std::move(out.ids)), to_array(std::move(out.scores)),
          std::move(columns)};
}

}  // namespace metarank
