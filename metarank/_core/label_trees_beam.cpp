// Pointwise prediction: beam search, tree by tree, for a block of queries at a time; its lists, and what it says of
// given pairs.
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
constexpr int64_t kRowsReached = 16;        // of which all that is seen is kept at once
constexpr int64_t kBlockBytes = 32 << 20;  // of lists; bounds the queries of a block

// Lists of at most k entries, stored k apart; the i-th has count[i].
struct GappedLists {
  std::vector<int64_t> count, indptr{0};
  std::vector<int32_t> ids;
  std::vector<float> scores;

  GappedLists(int64_t n, int64_t k) : count(n, 0), ids(n * k), scores(n * k) {}

  // Moved together.
  void close_gaps(int64_t k) {
    for (size_t i = 0; i < count.size(); ++i) {
      const int64_t from = i * k, to = indptr.back(), n = count[i];
      if (from != to) {
        std::copy_n(ids.begin() + from, n, ids.begin() + to);
        std::copy_n(scores.begin() + from, n, scores.begin() + to);
      }
      indptr.push_back(to + n);
    }
    ids.resize(indptr.back());
    scores.resize(indptr.back());
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
  void search(const SparseRows& X, int64_t begin, int64_t end, GappedLists& out, Reached* reached) {
    descend(X, begin, end, reached);
    for (int64_t q = 0; q < end - begin; ++q) out.count[begin + q] = merge(q, (begin + q) * k_, out);
  }

  // What the trees find for these rows; `reached` is told of what they see.
  void descend(const SparseRows& X, int64_t begin, int64_t end, Reached* reached) {
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
            if (reached != nullptr) note((begin + visit.row) * n_trees + t, visit, costs, first_slot, n_slots, *reached);
          });
      for (int64_t q = 0; q < n; ++q) {
        int64_t& m = n_found_[q * n_trees + t];
        const CostKey* best = labels_.best(q, &m);
        std::copy_n(best, m, found_.begin() + (q * n_trees + t) * tree_k_);
      }
    }
  }

 private:
  void note(int64_t list, const Visit& visit, const float* costs, int64_t first_slot, int32_t n_slots, Reached& out) {
    out.add(list, trees_.slot_block_[first_slot]);
    for (int64_t s = 0; s < n_slots; ++s) {
      const float above = trees_.child_.data()[first_slot + s] < 0 ? trees_.path_weight_ * visit.cost : visit.cost;
      out.costs.push_back(above + costs[s] + trees_.slot_cost_[first_slot + s]);
    }
  }

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

LabelLists LabelTrees::beam(const CsrView& view, int64_t width, int64_t k, int64_t tree_k, int n_threads,
                            Reached* reached) const {
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

  GappedLists out(X.n_rows, k);
  parallel_for(X.n_rows, n_threads, block, [&](int64_t begin, int64_t end, int) {
    const auto worker = pool_->take(*this);
    worker->set(beam, k, tree_k);
    worker->search(X, begin, end, out, reached);
  });
  if (reached != nullptr) reached->sort();
  out.close_gaps(k);
  return {to_array(std::move(out.indptr)), to_array(std::move(out.ids)), to_array(std::move(out.scores))};
}

// Where no search has been, labels below are taken to be refused by their own edges.
float LabelTrees::cost_of(const Reached& reached, int64_t list, int32_t slot) const {
  const auto known = [&](int32_t at) {
    const float* costs = reached.find(list, slot_block_[at]);
    return costs == nullptr ? nullptr : costs + (at - weights_.view().block_slot[slot_block_[at]]);
  };
  if (const float* cost = known(slot)) return *cost;
  for (int32_t at = parent_slot_[slot_node_[slot]]; at >= 0; at = parent_slot_[slot_node_[at]])
    if (const float* cost = known(at)) return path_weight_ * *cost + refused_ + slot_cost_[slot];
  return kLargestCost;
}

void LabelTrees::tell(const Reached& reached, int64_t begin, int64_t end, const Indptr& indptr, const Ids& labels,
                      std::vector<float>& mean, std::vector<float>& per_tree) const {
  std::vector<float> cost;
  for (int64_t i = begin; i < end; ++i) {
    const int64_t first = indptr(i), n = indptr(i + 1) - first;
    cost.resize(static_cast<size_t>(n));
    for (int64_t t = 0; t < n_trees(); ++t) {
      const int32_t* slot = label_slot_.data() + t * n_labels_;
      for (int64_t p = 0; p < n; ++p) {
        const int32_t s = slot[labels(first + p)];
        cost[p] = std::min(s < 0 ? kLargestCost : cost_of(reached, i * n_trees() + t, s), kLargestCost);
        if (!per_tree.empty()) per_tree[(first + p) * n_trees() + t] = -cost[p];
      }
      probabilities(cost.data(), n);
      for (int64_t p = 0; p < n; ++p)
        if (slot[labels(first + p)] >= 0) mean[first + p] += cost[p];
    }
    for (int64_t p = first; p < first + n; ++p) mean[p] /= static_cast<float>(n_trees());
  }
}

TreeColumns LabelTrees::score_pairs(const CsrView& view, int64_t width, Indptr indptr, Ids labels, bool per_tree,
                                    int n_threads, const Reached* known) const {
  require(width >= 1, "beam must be positive");
  const SparseRows X = require_rows(view, n_features());
  require_pairs(indptr, labels, X.n_rows, n_labels_);
  const int64_t all = std::max<int64_t>(1, n_nodes());
  const auto asks_for_all = [&](int64_t i) { return indptr(i + 1) - indptr(i) == n_labels_; };
  std::vector<float> mean(labels.shape(0), 0.0f), by_tree(per_tree ? labels.shape(0) * n_trees() : 0);
  parallel_for(X.n_rows, n_threads, kRowsReached, [&](int64_t begin, int64_t end, int) {
    const auto worker = pool_->take(*this);
    for (int64_t stop = begin; begin < end; begin = stop) {
      while (stop < end && asks_for_all(stop) == asks_for_all(begin)) ++stop;
      if (known != nullptr && !asks_for_all(begin)) {
        tell(*known, begin, stop, indptr, labels, mean, by_tree);
        continue;
      }
      Reached reached;
      worker->set(asks_for_all(begin) ? all : std::min(width, all), 1, 1);
      worker->descend(X, begin, stop, &reached);
      reached.sort();
      tell(reached, begin, stop, indptr, labels, mean, by_tree);
    }
  });
  std::optional<Array2<float>> columns;
  if (per_tree) columns = to_array(std::move(by_tree), labels.shape(0), n_trees());
  return {to_array(std::move(mean)), std::move(columns)};
}

}  // namespace metarank
