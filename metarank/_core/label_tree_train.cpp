#include "label_tree_train.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <span>

#include "arrays.h"
#include "parallel.h"
#include "block_scores.h"
#include "hierarchy.h"
#include "linear_lanes.h"
#include "pairs.h"

namespace metarank {

namespace {

struct Relevant {
  std::int32_t row;
  float relevance;
};

struct Tree {
  const std::int64_t* child_start;
  const std::int32_t* child;
  std::int64_t n_nodes;
};

struct Labels {
  const std::int64_t* indptr;
  const std::int32_t* rows;
  const float* relevance;
};

// Rows that a search would take to a leaf node, ascending, by node: those without a relevant label
// there are the irrelevant examples its classifiers will meet.
using Visitors = std::vector<std::vector<std::int32_t>>;

struct TrainOptions {
  LaneOptions lanes;
  bool mean_cost;    // C / |I_n| in place of C
  float threshold;   // smaller weights are dropped
  std::uint64_t seed;
  std::int64_t first_slot;  // number of the first slot in the ensemble that the trees are of: seeds go by it
};

// The rows below each node, ascending, with the largest relevance of any label there.
class RowsBelow {
 public:
  RowsBelow(const Tree& tree, const Labels& labels, std::int64_t n_rows, const std::vector<std::int64_t>& tree_start,
            int n_threads)
      : tree_(tree), labels_(labels), lists_(static_cast<std::size_t>(tree.n_nodes)) {
    const auto n_trees = static_cast<std::int64_t>(tree_start.size()) - 1;
    parallel_for(n_trees, n_threads, 1, [&](std::int64_t t, std::int64_t, int) {
      std::vector<float> largest(static_cast<std::size_t>(n_rows), 0.0f);
      std::vector<std::int32_t> touched;
      for (std::int64_t node = tree_start[static_cast<std::size_t>(t) + 1] - 1;
           node > tree_start[static_cast<std::size_t>(t)]; --node) {  // children first; the root has all rows
        touched.clear();
        for (std::int64_t s = tree_.child_start[node]; s < tree_.child_start[node + 1]; ++s)
          visit(s, [&](std::int32_t row, float relevance) {
            float& m = largest[static_cast<std::size_t>(row)];
            if (m == 0.0f) touched.push_back(row);
            m = std::max(m, relevance);
          });
        std::sort(touched.begin(), touched.end());
        auto& list = lists_[static_cast<std::size_t>(node)];
        list.reserve(touched.size());
        for (const std::int32_t row : touched) {
          list.push_back({row, largest[static_cast<std::size_t>(row)]});
          largest[static_cast<std::size_t>(row)] = 0.0f;
        }
      }
    });
  }

  const std::vector<Relevant>& of(std::int64_t node) const { return lists_[static_cast<std::size_t>(node)]; }

  // f(row, relevance) for the rows below the child in a slot.
  template <typename F>
  void visit(std::int64_t slot, const F& f) const {
    const std::int32_t child = tree_.child[slot];
    if (child >= 0) {
      for (const Relevant& r : lists_[static_cast<std::size_t>(child)]) f(r.row, r.relevance);
    } else {
      const std::int64_t label = ~child;
      for (std::int64_t p = labels_.indptr[label]; p < labels_.indptr[label + 1]; ++p)
        f(labels_.rows[p], labels_.relevance[p]);
    }
  }

 private:
  const Tree& tree_;
  Labels labels_;
  std::vector<std::vector<Relevant>> lists_;
};

// Features by falling frequency in X: their rank, and the feature of a rank.
struct FeatureOrder {
  std::vector<std::uint32_t> rank;
  std::vector<std::int32_t> feature;

  FeatureOrder(const SparseRows& X, std::int64_t nnz, std::int64_t n_features)
      : rank(static_cast<std::size_t>(n_features)), feature(static_cast<std::size_t>(n_features)) {
    std::vector<std::int64_t> count(static_cast<std::size_t>(n_features), 0);
    for (std::int64_t p = 0; p < nnz; ++p) ++count[static_cast<std::size_t>(X.indices[p])];
    std::iota(feature.begin(), feature.end(), 0);
    std::stable_sort(feature.begin(), feature.end(), [&](std::int32_t a, std::int32_t b) {
      return count[static_cast<std::size_t>(a)] > count[static_cast<std::size_t>(b)];
    });
    for (std::size_t r = 0; r < feature.size(); ++r) rank[static_cast<std::size_t>(feature[r])] = static_cast<std::uint32_t>(r);
  }
};

// What one worker keeps from node to node.
struct Worker {
  LaneRows rows;
  LaneWork lanes;
  std::vector<std::uint64_t> present;       // bit r: the feature of rank r occurs in the node; then bit f: f does
  std::vector<std::uint32_t> local;         // rank -> number in the node
  std::vector<std::int32_t> feature;        // number in the node -> feature
  std::vector<std::uint32_t> by_feature;    // numbers in the node, ascending features
  std::vector<std::uint32_t> position;      // row of X -> row of the node
  std::vector<Relevant> reaching;           // the node's rows and m(node)
  std::vector<std::uint32_t> own, others;   // of these, those with a relevant label below, and visitors
  struct Entry {
    std::uint32_t number;
    std::uint8_t slot;
    float weight;
  };
  std::vector<Entry> entries;               // as many as any block had; those of the block at hand come first
  std::vector<std::uint32_t> count;
};

class Trainer {
 public:
  Trainer(const Tree& tree, const SparseRows& X, const FeatureOrder& order, const RowsBelow& below,
          const Visitors& visitors, const float* row_cost, std::int64_t n_rows, const TrainOptions& options)
      : tree_(tree), X_(X), order_(order), below_(below), visitors_(visitors), row_cost_(row_cost), n_rows_(n_rows), options_(options) {}

  std::vector<EncodedBlock> train(std::int64_t node, bool is_root, Worker& worker) const {
    gather(node, is_root, worker);
    std::vector<EncodedBlock> blocks;
    const std::int64_t end = tree_.child_start[node + 1];
    for (std::int64_t first = tree_.child_start[node]; first < end; first += kMaxBlockSlots)
      blocks.push_back(encode(block(first, std::min(first + kMaxBlockSlots, end), worker)));
    return blocks;
  }

 private:
  // The node's rows over its own features.
  void gather(std::int64_t node, bool is_root, Worker& w) const {
    w.reaching.clear();
    w.own.clear();
    w.others.clear();
    if (is_root) {
      for (std::int64_t i = 0; i < n_rows_; ++i) w.reaching.push_back({static_cast<std::int32_t>(i), 1.0f});
      w.own.resize(w.reaching.size());
      std::iota(w.own.begin(), w.own.end(), 0u);
    } else {
      merge(below_.of(node), visitors_[static_cast<std::size_t>(node)], w);
    }
    const std::size_t m = w.reaching.size();
    w.rows.order = w.own;
    w.rows.order.insert(w.rows.order.end(), w.others.begin(), w.others.end());
    w.rows.n_first = static_cast<std::uint32_t>(w.own.size());
    w.present.assign((order_.rank.size() + 63) / 64, 0);
    w.local.resize(order_.rank.size());
    w.position.resize(static_cast<std::size_t>(n_rows_));
    LaneRows& rows = w.rows;
    rows.n_rows = static_cast<std::int64_t>(m);
    rows.start.assign(1, 0);
    rows.feature.clear();
    rows.value.clear();
    rows.sq_norm.resize(m);
    rows.cost.resize(m);
    for (std::size_t i = 0; i < m; ++i) {
      const std::int32_t row = w.reaching[i].row;
      w.position[static_cast<std::size_t>(row)] = static_cast<std::uint32_t>(i);
      float norm = options_.lanes.bias * options_.lanes.bias;
      for (std::int64_t p = X_.indptr[row]; p < X_.indptr[row + 1]; ++p) {
        const std::uint32_t rank = order_.rank[static_cast<std::size_t>(X_.indices[p])];
        w.present[rank >> 6] |= 1ULL << (rank & 63);
        rows.feature.push_back(rank);
        rows.value.push_back(X_.data[p]);
        norm += X_.data[p] * X_.data[p];
      }
      require(rows.feature.size() < std::numeric_limits<std::uint32_t>::max(), "X has too many stored values");
      rows.start.push_back(static_cast<std::uint32_t>(rows.feature.size()));
      rows.sq_norm[i] = norm;
      rows.cost[i] = row_cost_[row] * w.reaching[i].relevance;
      if (options_.mean_cost) rows.cost[i] /= static_cast<float>(m);
    }
    w.feature.clear();
    for_each_bit(w.present, [&](std::size_t rank) {
      w.local[rank] = static_cast<std::uint32_t>(w.feature.size());
      w.feature.push_back(order_.feature[rank]);
    });
    for (std::uint32_t& f : rows.feature) f = w.local[f];
    rows.n_features = static_cast<std::int64_t>(w.feature.size());
    w.present.assign(w.present.size(), 0);
    for (const std::int32_t f : w.feature) w.present[static_cast<std::size_t>(f) >> 6] |= 1ULL << (f & 63);
    w.by_feature.clear();
    for_each_bit(w.present, [&](std::size_t f) { w.by_feature.push_back(w.local[order_.rank[f]]); });
  }

  template <typename F>
  static void for_each_bit(const std::vector<std::uint64_t>& words, const F& f) {
    for (std::size_t word = 0; word < words.size(); ++word)
      for (std::uint64_t bits = words[word]; bits != 0; bits &= bits - 1)
        f(word * 64 + static_cast<std::size_t>(std::countr_zero(bits)));
  }

  // The rows below a node, and its visitors at full cost. The first passes look at the former alone: most
  // visitors are easy then, where from weights of 0 each would move them all.
  static void merge(const std::vector<Relevant>& below, const std::vector<std::int32_t>& visitors, Worker& w) {
    std::vector<Relevant>& out = w.reaching;
    auto b = below.begin();
    auto visitor = visitors.begin();
    while (b != below.end() || visitor != visitors.end()) {
      if (visitor == visitors.end() || (b != below.end() && b->row <= *visitor)) {
        if (visitor != visitors.end() && b->row == *visitor) ++visitor;
        w.own.push_back(static_cast<std::uint32_t>(out.size()));
        out.push_back(*b++);
      } else {
        w.others.push_back(static_cast<std::uint32_t>(out.size()));
        out.push_back({*visitor++, 1.0f});
      }
    }
  }

  RawBlock block(std::int64_t first, std::int64_t end, Worker& w) const {
    RawBlock out;
    out.bias.resize(static_cast<std::size_t>(end - first));
    std::size_t n_entries = 0;
    w.count.assign(w.feature.size(), 0);
    for (std::int64_t group = first; group < end; group += kLabelLanes) {
      const int n_labels = static_cast<int>(std::min<std::int64_t>(kLabelLanes, end - group));
      targets(group, n_labels, w);
      const std::uint64_t seed = hash_pair(options_.seed, static_cast<std::uint64_t>(options_.first_slot + group));
      train_lanes(w.rows, options_.lanes, n_labels, seed, w.lanes);
      const float* W = w.lanes.weights.data();
      // Room for all, and a step on where one stays: which do is no pattern that a branch could learn.
      w.entries.resize(std::max(w.entries.size(), n_entries + w.feature.size() * static_cast<std::size_t>(n_labels)));
      Worker::Entry* entry = w.entries.data() + n_entries;
      for (std::uint32_t number = 0; number < w.feature.size(); ++number) {
        const Worker::Entry* const none = entry;
        for (int j = 0; j < n_labels; ++j) {
          const float weight = W[static_cast<std::size_t>(number) * kLabelLanes + static_cast<std::size_t>(j)];
          *entry = {number, static_cast<std::uint8_t>(group - first + j), weight};
          entry += std::fabs(weight) > options_.threshold;
        }
        w.count[number] += static_cast<std::uint32_t>(entry - none);
      }
      n_entries = static_cast<std::size_t>(entry - w.entries.data());
      for (int j = 0; j < n_labels; ++j)
        out.bias[static_cast<std::size_t>(group - first + j)] =
            options_.lanes.bias * W[w.feature.size() * kLabelLanes + static_cast<std::size_t>(j)];
    }
    // Entries by feature; within a feature they come slot by slot, as they were made.
    std::uint32_t total = 0;
    out.row_start.push_back(0);
    for (const std::uint32_t number : w.by_feature) {
      const std::uint32_t size = w.count[number];
      w.count[number] = total;
      total += size;
      if (size == 0) continue;
      out.feature.push_back(w.feature[number]);
      out.row_start.push_back(total);
    }
    out.slot.resize(total);
    out.weight.resize(total);
    for (const auto& e : std::span(w.entries).first(n_entries)) {
      const std::uint32_t at = w.count[e.number]++;
      out.slot[at] = e.slot;
      out.weight[at] = e.weight;
    }
    return out;
  }

  void targets(std::int64_t group, int n_labels, Worker& w) const {
    w.lanes.target.assign(static_cast<std::size_t>(w.rows.n_rows) * kLabelLanes, 0.0f);
    for (int j = 0; j < n_labels; ++j)
      below_.visit(group + j, [&](std::int32_t row, float relevance) {
        const std::size_t i = w.position[static_cast<std::size_t>(row)];
        w.lanes.target[i * kLabelLanes + static_cast<std::size_t>(j)] =
            options_.lanes.loss == LinearLoss::logistic ? relevance / w.reaching[i].relevance : 1.0f;
      });
  }

  const Tree& tree_;
  const SparseRows& X_;
  const FeatureOrder& order_;
  const RowsBelow& below_;
  const Visitors& visitors_;
  const float* row_cost_;
  std::int64_t n_rows_;
  const TrainOptions& options_;
};

WeightBlock block_of(const EncodedBlock& e) {
  return {e.bucket_offset.data(), e.data.data(), e.bias.data(), e.scale.data(),
          static_cast<std::int64_t>(e.bucket_offset.size()) - 1, static_cast<std::int32_t>(e.bias.size()), e.shift};
}

// By level, at most `beam` open nodes a row: the leaf nodes each row of X reaches in each tree.
Visitors leaf_visitors(const Tree& tree, const std::vector<std::vector<EncodedBlock>>& blocks, const SparseRows& X,
                       std::int64_t n_rows, std::int64_t n_features, const std::vector<std::int64_t>& tree_start,
                       int beam, Link link, int n_threads) {
  constexpr std::int64_t kRows = 1024;
  const std::int64_t n_blocks = (n_rows + kRows - 1) / kRows;
  const auto n_trees = static_cast<std::int64_t>(tree_start.size()) - 1;
  struct Visit {
    std::int32_t node, row;
    float cost;
  };
  std::vector<std::vector<Visit>> reached(static_cast<std::size_t>(n_trees * n_blocks));
  parallel_for(n_trees * n_blocks, n_threads, 1, [&](std::int64_t task, std::int64_t, int) {
    const auto root = static_cast<std::int32_t>(tree_start[static_cast<std::size_t>(task / n_blocks)]);
    const std::int64_t first = (task % n_blocks) * kRows, end = std::min(n_rows, first + kRows);
    std::vector<Visit> open, next;
    auto& leaf = reached[static_cast<std::size_t>(task)];
    for (std::int64_t i = first; i < end; ++i) open.push_back({root, static_cast<std::int32_t>(i), 0.0f});
    std::vector<SparseRow> rows;
    for (std::int64_t i = first; i < end; ++i)
      rows.push_back({X.indices + X.indptr[i], X.data + X.indptr[i], X.indptr[i + 1] - X.indptr[i]});
    const auto row = [&](std::int32_t i) -> const SparseRow& { return rows[static_cast<std::size_t>(i - first)]; };
    std::vector<const SparseRow*> queries;
    std::vector<float> margins;
    BlockScores scores(n_features);
    std::vector<Visit> sorted;
    std::vector<std::size_t> start;
    // Stable, by key in [least, most].
    const auto sort_by = [&](std::vector<Visit>& visits, std::int32_t Visit::* key, std::int64_t least, std::int64_t most) {
      start.assign(static_cast<std::size_t>(most - least + 2), 0);
      for (const Visit& v : visits) ++start[static_cast<std::size_t>(v.*key - least) + 1];
      for (std::size_t k = 1; k < start.size(); ++k) start[k] += start[k - 1];
      sorted.resize(visits.size());
      for (const Visit& v : visits) sorted[start[static_cast<std::size_t>(v.*key - least)]++] = v;
      visits.swap(sorted);
    };
    // The `beam` cheapest visits of each row; rows ascend, those of a row stand in any order.
    const auto keep_best = [&](std::vector<Visit>& visits) {
      sort_by(visits, &Visit::row, first, end);
      auto kept = visits.begin();
      for (auto v = visits.begin(), last = v; v != visits.end(); v = last) {
        while (last != visits.end() && last->row == v->row) ++last;
        const auto best = last - v > beam ? v + beam : last;
        if (best != last)
          std::nth_element(v, best, last, [](const Visit& a, const Visit& b) {
            return a.cost < b.cost || (a.cost == b.cost && a.node < b.node);
          });
        kept = std::copy(v, best, kept);
      }
      visits.erase(kept, visits.end());
    };
    while (!open.empty()) {
      next.clear();
      const auto [least, most] = std::minmax_element(
          open.begin(), open.end(), [](const Visit& a, const Visit& b) { return a.node < b.node; });
      sort_by(open, &Visit::node, least->node, most->node);
      for (std::size_t v = 0, group = 0; v < open.size(); v = group) {
        const std::int32_t node = open[v].node;
        queries.clear();
        std::int64_t n_values = 0;
        for (group = v; group < open.size() && open[group].node == node; ++group) {
          const SparseRow& x = row(open[group].row);
          queries.push_back(&x);
          n_values += x.size;
        }
        if (blocks[static_cast<std::size_t>(node)].empty()) {  // not trained yet: a leaf
          leaf.insert(leaf.end(), open.begin() + static_cast<std::ptrdiff_t>(v),
                      open.begin() + static_cast<std::ptrdiff_t>(group));
          continue;
        }
        std::int64_t slot = tree.child_start[node];
        for (const EncodedBlock& encoded : blocks[static_cast<std::size_t>(node)]) {
          const WeightBlock block = block_of(encoded);
          scores.open(block, n_values);
          const std::int64_t stride = scores.stride();
          margins.resize(queries.size() * static_cast<std::size_t>(stride));
          scores.margins(queries.data(), static_cast<std::int64_t>(queries.size()), margins.data());
          edge_costs(link, margins.data(), static_cast<std::int64_t>(margins.size()));
          scores.close();
          for (std::size_t q = 0; q < queries.size(); ++q)
            for (std::int32_t j = 0; j < block.n_slots; ++j)
              if (tree.child[slot + j] >= 0)
                next.push_back({tree.child[slot + j], open[v + q].row,
                                open[v + q].cost + margins[q * static_cast<std::size_t>(stride) + static_cast<std::size_t>(j)]});
          slot += block.n_slots;
        }
      }
      keep_best(next);
      open.swap(next);
    }
    keep_best(leaf);
  });
  Visitors out(static_cast<std::size_t>(tree.n_nodes));
  for (const auto& visits : reached)
    for (const Visit& v : visits) out[static_cast<std::size_t>(v.node)].push_back(v.row);
  return out;
}

std::int64_t require_labels(const LabelRows& labels, std::int64_t n_rows) {
  require(labels.indptr.shape(0) >= 1, "label_indptr must have at least one entry");
  const auto n_labels = static_cast<std::int64_t>(labels.indptr.shape(0)) - 1;
  require_pairs(labels.indptr, labels.rows, n_labels, n_rows);
  require(labels.relevance.shape(0) == labels.rows.shape(0), "relevance must have one value a pair");
  for (std::size_t p = 0; p < labels.relevance.shape(0); ++p)
    require(labels.relevance(p) > 0.0f && labels.relevance(p) <= 1.0f, "relevance must lie in (0, 1]");
  return n_labels;
}

TrainOptions require_options(const LabelTreeOptions& options) {
  require(options.loss >= LinearLoss::hinge && options.loss <= LinearLoss::logistic,
          "loss must be 0 (hinge), 1 (squared hinge) or 2 (logistic)");
  require(options.C > 0.0 && std::isfinite(options.C), "C must be positive and finite");
  require(options.link >= Link::logistic && static_cast<int>(options.link) < kLinks,
          "link must be one of those of block_scores.h");
  require(options.tolerance > 0.0 && options.max_epochs >= 1 && options.threshold >= 0.0,
          "tolerance, max_epochs and threshold must be positive");
  require(options.first_slot >= 0, "first_slot must be non-negative");
  return {{options.loss, static_cast<float>(options.C), static_cast<float>(options.tolerance), options.max_epochs,
           static_cast<float>(options.bias)},
          options.mean_cost, static_cast<float>(options.threshold), options.seed, options.first_slot};
}

}  // namespace

TrainedTrees train_label_trees(const CsrView& rows, const LabelRows& labels, const In1<float>& row_cost,
                               const HierarchyView& hierarchy, const LabelTreeOptions& asked, int n_threads) {
  const auto& [roots, child_start, child] = hierarchy;
  const std::int64_t n_features = rows.n_columns;
  require(n_features >= 0, "n_features must be non-negative");
  const SparseRows X = require_csr(rows.indptr, rows.indices, rows.data, n_features);
  const auto n_rows = static_cast<std::int64_t>(rows.indptr.shape(0)) - 1;
  require(n_rows >= 1, "X must have at least one row");
  const std::int64_t n_labels = require_labels(labels, n_rows);
  require(static_cast<std::int64_t>(row_cost.shape(0)) == n_rows, "row_cost must have one value a row");
  for (std::size_t i = 0; i < row_cost.shape(0); ++i)
    require(row_cost(i) > 0.0f && std::isfinite(row_cost(i)), "row_cost must be positive and finite");
  const TrainOptions options = require_options(asked);
  const auto n_nodes = static_cast<std::int64_t>(child_start.shape(0)) - 1;
  const Tree tree{child_start.data(), child.data(), n_nodes};
  const std::vector<std::int64_t> tree_start = require_hierarchy(roots, child_start, child, n_labels);

  std::vector<std::vector<EncodedBlock>> blocks(static_cast<std::size_t>(n_nodes));
  std::vector<float> frac(static_cast<std::size_t>(n_nodes), 1.0f);
  const RowsBelow below(tree, {labels.indptr.data(), labels.rows.data(), labels.relevance.data()}, n_rows, tree_start, n_threads);
  const FeatureOrder order(X, rows.indptr(n_rows), n_features);
  std::vector<char> is_root(static_cast<std::size_t>(n_nodes), 0);
  for (std::size_t t = 0; t < roots.shape(0); ++t) is_root[static_cast<std::size_t>(roots(t))] = 1;
  for (std::int64_t node = 0; node < n_nodes; ++node)
    if (!is_root[static_cast<std::size_t>(node)])
      frac[static_cast<std::size_t>(node)] =
          static_cast<float>(static_cast<double>(below.of(node).size()) / static_cast<double>(n_rows));
  Visitors reaching(static_cast<std::size_t>(n_nodes));
  const Trainer trainer(tree, X, order, below, reaching, row_cost.data(), n_rows, options);
  std::vector<Worker> workers(static_cast<std::size_t>(std::max(1, n_threads)));
  const auto train = [&](const std::vector<std::int64_t>& nodes) {
    // The longest tasks first, so that no thread is left with a root at the end.
    std::vector<std::pair<std::int64_t, std::int64_t>> tasks;
    for (const std::int64_t node : nodes) {
      const std::size_t rows = is_root[static_cast<std::size_t>(node)]
                                   ? static_cast<std::size_t>(n_rows)
                                   : below.of(node).size() + reaching[static_cast<std::size_t>(node)].size();
      const std::int64_t groups = (tree.child_start[node + 1] - tree.child_start[node] + kLabelLanes - 1) / kLabelLanes;
      tasks.emplace_back(-static_cast<std::int64_t>(rows) * (groups + 1), node);
    }
    std::sort(tasks.begin(), tasks.end());
    parallel_for(static_cast<std::int64_t>(tasks.size()), n_threads, 1, [&](std::int64_t at, std::int64_t, int worker) {
      const auto node = static_cast<std::size_t>(tasks[static_cast<std::size_t>(at)].second);
      blocks[node] = trainer.train(static_cast<std::int64_t>(node), is_root[node] != 0,
                                   workers[static_cast<std::size_t>(worker)]);
    });
  };
  std::vector<std::int64_t> inner, leaves;
  for (std::int64_t node = 0; node < n_nodes; ++node) {
    const bool leads_on = std::any_of(tree.child + tree.child_start[node], tree.child + tree.child_start[node + 1],
                                      [](std::int32_t c) { return c >= 0; });
    (leads_on ? inner : leaves).push_back(node);
  }
  train(inner);
  if (asked.visitors > 0)
    reaching = leaf_visitors(tree, blocks, X, n_rows, n_features, tree_start, asked.visitors, asked.link, n_threads);
  train(leaves);
  std::vector<EncodedBlock> all;
  std::vector<std::int64_t> node_blocks;
  for (auto& of_node : blocks) {
    node_blocks.push_back(static_cast<std::int64_t>(of_node.size()));
    std::move(of_node.begin(), of_node.end(), std::back_inserter(all));
  }
  return {concatenate(std::move(all), node_blocks), std::move(frac)};
}

}  // namespace metarank
