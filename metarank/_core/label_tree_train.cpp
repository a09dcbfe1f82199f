#include "label_tree_train.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <mutex>
#include <span>

#include "arrays.h"
#include "parallel.h"
#include "block_scores.h"
#include "hierarchy.h"
#include "linear_lanes.h"
#include "sparse_rows.h"
#include "tree_search.h"

namespace metarank {

namespace {

struct Relevant {
  int32_t row;
  float relevance;
};

// Rows that a search would take to a leaf node, ascending, by node: those without a relevant label
// there are the irrelevant examples its classifiers will meet.
using Visitors = std::vector<std::vector<int32_t>>;

// The classifiers of all nodes, block by block; empty where they are not trained yet.
struct Blocks {
  std::vector<int64_t> node_block{0}, block_slot{0};  // of a node its first block, of a block its first slot
  std::vector<EncodedBlock> encoded;

  explicit Blocks(const Indptr& child_start) {
    for (size_t node = 0; node + 1 < child_start.shape(0); ++node) {
      for (int64_t s = child_start(node); s < child_start(node + 1); s = block_slot.back())
        block_slot.push_back(std::min(s + kMaxBlockSlots, child_start(node + 1)));
      node_block.push_back(static_cast<int64_t>(block_slot.size()) - 1);
    }
    encoded.resize(static_cast<size_t>(node_block.back()));
  }
  WeightBlock block(int64_t b) const {
    const EncodedBlock& e = encoded[b];
    return {e.bucket_offset.data(), e.data.data(), e.bias.data(), e.scale.data(),
            static_cast<int64_t>(e.bucket_offset.size()) - 1, static_cast<int32_t>(e.bias.size()), e.shift};
  }
};

// A negative weight counts so many times when weights are dropped: what speaks against a label is spread over more
// features than what speaks for it.
constexpr float kNegative = -2.0f;

inline bool is_kept(float weight, float threshold) { return std::max(weight, kNegative * weight) > threshold; }

// Of sixteen classifiers the square root of their length over that of the weights kept, which are multiplied by it:
// classifiers of many small weights would else fall behind. The whole ratio, or its square, lists rare labels higher at
// the price of the first places where rows are long.
struct Lengths {
  float ratio[kLabelLanes];

  Lengths(const float* W, size_t n_features, float threshold) {
    float all[kLabelLanes] = {0}, kept[kLabelLanes] = {0};
    for (size_t f = 0; f < n_features; ++f, W += kLabelLanes)
      for (int j = 0; j < kLabelLanes; ++j) {
        const float square = W[j] * W[j];
        all[j] += square;
        kept[j] += is_kept(W[j], threshold) ? square : 0.0f;
      }
    for (int j = 0; j < kLabelLanes; ++j) ratio[j] = kept[j] > 0.0f ? std::sqrt(std::sqrt(all[j] / kept[j])) : 1.0f;
  }
};

// The rows below each node, ascending, with the largest relevance of any label there; 1 for all rows at a root.
class RowsBelow {
 public:
  RowsBelow(const HierarchyView& tree, const LabelRows& labels, int64_t n_rows, const std::vector<int64_t>& tree_start,
            int n_threads)
      : tree_(tree), labels_(labels), lists_(static_cast<size_t>(tree_start.back())) {
    const auto n_trees = static_cast<int64_t>(tree_start.size()) - 1;
    parallel_for(n_trees, n_threads, 1, [&](int64_t t, int64_t, int) {
      std::vector<float> largest(static_cast<size_t>(n_rows), 0.0f);
      std::vector<int32_t> touched;
      for (int64_t node = tree_start[t + 1] - 1; node > tree_start[t]; --node) {  // children first
        touched.clear();
        for (int64_t s = tree_.child_start(node); s < tree_.child_start(node + 1); ++s)
          visit(s, [&](int32_t row, float relevance) {
            float& m = largest[row];
            if (m == 0.0f) touched.push_back(row);
            m = std::max(m, relevance);
          });
        std::sort(touched.begin(), touched.end());
        lists_[node].reserve(touched.size());
        for (const int32_t row : touched) {
          lists_[node].push_back({row, largest[row]});
          largest[row] = 0.0f;
        }
      }
      for (int32_t i = 0; i < n_rows; ++i) lists_[tree_start[t]].push_back({i, 1.0f});
    });
  }

  const std::vector<Relevant>& of(int64_t node) const { return lists_[node]; }

  // f(row, relevance) for the rows below the child in a slot.
  template <typename F>
  void visit(int64_t slot, const F& f) const {
    const int32_t child = tree_.child(slot);
    if (child >= 0) {
      for (const Relevant& r : lists_[child]) f(r.row, r.relevance);
    } else {
      for (int64_t p = labels_.indptr(~child); p < labels_.indptr(~child + 1); ++p)
        f(labels_.rows(p), labels_.relevance(p));
    }
  }

 private:
  HierarchyView tree_;
  LabelRows labels_;
  std::vector<std::vector<Relevant>> lists_;
};

// What one worker keeps from node to node.
struct Worker {
  LaneRows rows;
  LaneWork lanes;
  std::vector<uint64_t> present;       // bit r: the feature of rank r occurs in the node; then bit f: f does
  std::vector<uint32_t> local;         // rank -> number in the node
  std::vector<int32_t> feature;        // number in the node -> feature
  std::vector<uint32_t> by_feature;    // numbers in the node, ascending features
  std::vector<uint32_t> position;      // row of X -> row of the node
  std::vector<Relevant> reaching;           // the node's rows and m(node)
  std::vector<uint32_t> own, others;   // of these, those with a relevant label below, and visitors
  struct Entry {
    uint32_t number;
    uint8_t slot;
    float weight;
  };
  std::vector<Entry> entries;               // as many as any block had; those of the block at hand come first
  std::vector<uint32_t> count;
};

class Trainer {
 public:
  Trainer(const SparseRows& X, const FeatureOrder& order, const RowsBelow& below, const Visitors& visitors,
          const In1<float>& row_cost, const LabelTreeOptions& options)
      : X_(X), order_(order), below_(below), visitors_(visitors), row_cost_(row_cost), options_(options),
        lanes_{options.loss, static_cast<float>(options.C), static_cast<float>(options.tolerance), options.max_epochs,
               static_cast<float>(options.bias)} {}

  void train(int64_t node, Blocks& blocks, Worker& worker) const {
    gather(node, worker);
    for (int64_t b = blocks.node_block[node]; b < blocks.node_block[node + 1]; ++b)
      blocks.encoded[b] = encode(block(blocks.block_slot[b], blocks.block_slot[b + 1], worker));
  }

 private:
  // The node's rows over its own features.
  void gather(int64_t node, Worker& w) const {
    w.reaching.clear();
    w.own.clear();
    w.others.clear();
    merge(below_.of(node), visitors_[node], w);
    const size_t m = w.reaching.size();
    w.rows.order = w.own;
    w.rows.order.insert(w.rows.order.end(), w.others.begin(), w.others.end());
    w.rows.n_first = static_cast<uint32_t>(w.own.size());
    w.present.assign((order_.rank.size() + 63) / 64, 0);
    w.local.resize(order_.rank.size());
    w.position.resize(static_cast<size_t>(X_.n_rows));
    LaneRows& rows = w.rows;
    rows.n_rows = static_cast<int64_t>(m);
    rows.start.assign(1, 0);
    rows.feature.clear();
    rows.value.clear();
    size_t n_values = 0;
    for (const Relevant& r : w.reaching) n_values += static_cast<size_t>(X_.row(r.row).size);
    rows.feature.reserve(n_values);
    rows.value.reserve(n_values);
    rows.sq_norm.resize(m);
    rows.cost.resize(m);
    for (size_t i = 0; i < m; ++i) {
      const int32_t row = w.reaching[i].row;
      w.position[row] = static_cast<uint32_t>(i);
      float norm = lanes_.bias * lanes_.bias;
      for (int64_t p = X_.indptr[row]; p < X_.indptr[row + 1]; ++p) {
        const uint32_t rank = order_.rank[X_.indices[p]];
        w.present[rank >> 6] |= 1ULL << (rank & 63);
        rows.feature.push_back(rank);
        rows.value.push_back(X_.data[p]);
        norm += X_.data[p] * X_.data[p];
      }
      require(rows.feature.size() < std::numeric_limits<uint32_t>::max(), "X has too many stored values");
      rows.start.push_back(static_cast<uint32_t>(rows.feature.size()));
      rows.sq_norm[i] = norm;
      rows.cost[i] = row_cost_(row) * w.reaching[i].relevance;
      if (options_.mean_cost) rows.cost[i] /= static_cast<float>(m);
    }
    w.feature.clear();
    for_each_bit(w.present, [&](size_t rank) {
      w.local[rank] = static_cast<uint32_t>(w.feature.size());
      w.feature.push_back(order_.feature[rank]);
    });
    for (uint32_t& f : rows.feature) f = w.local[f];
    rows.n_features = static_cast<int64_t>(w.feature.size());
    w.present.assign(w.present.size(), 0);
    for (const int32_t f : w.feature) w.present[static_cast<size_t>(f) >> 6] |= 1ULL << (f & 63);
    w.by_feature.clear();
    for_each_bit(w.present, [&](size_t f) { w.by_feature.push_back(w.local[order_.rank[f]]); });
  }

  template <typename F>
  static void for_each_bit(const std::vector<uint64_t>& words, const F& f) {
    for (size_t word = 0; word < words.size(); ++word)
      for (uint64_t bits = words[word]; bits != 0; bits &= bits - 1)
        f(word * 64 + static_cast<size_t>(std::countr_zero(bits)));
  }

  // The rows below a node, and its visitors at full cost. The first passes look at the former alone: most
  // visitors are easy then, where from weights of 0 each would move them all.
  static void merge(const std::vector<Relevant>& below, const std::vector<int32_t>& visitors, Worker& w) {
    std::vector<Relevant>& out = w.reaching;
    auto b = below.begin();
    auto visitor = visitors.begin();
    while (b != below.end() || visitor != visitors.end()) {
      if (visitor == visitors.end() || (b != below.end() && b->row <= *visitor)) {
        if (visitor != visitors.end() && b->row == *visitor) ++visitor;
        w.own.push_back(static_cast<uint32_t>(out.size()));
        out.push_back(*b++);
      } else {
        w.others.push_back(static_cast<uint32_t>(out.size()));
        out.push_back({*visitor++, 1.0f});
      }
    }
  }

  RawBlock block(int64_t first, int64_t end, Worker& w) const {
    RawBlock out;
    out.bias.resize(static_cast<size_t>(end - first));
    size_t n_entries = 0;
    w.count.assign(w.feature.size(), 0);
    const auto threshold = static_cast<float>(options_.threshold);
    for (int64_t group = first; group < end; group += kLabelLanes) {
      const int n_labels = static_cast<int>(std::min<int64_t>(kLabelLanes, end - group));
      targets(group, n_labels, w);
      const uint64_t seed = hash_pair(options_.seed, static_cast<uint64_t>(group));
      train_lanes(w.rows, lanes_, n_labels, seed, w.lanes);
      const float* W = w.lanes.weights.data();
      const Lengths lengths(W, w.feature.size(), threshold);
      // Room for all, and a step on where one stays: which do is no pattern that a branch could learn.
      w.entries.resize(std::max(w.entries.size(), n_entries + w.feature.size() * static_cast<size_t>(n_labels)));
      Worker::Entry* entry = w.entries.data() + n_entries;
      for (uint32_t number = 0; number < w.feature.size(); ++number) {
        const Worker::Entry* const none = entry;
        for (int j = 0; j < n_labels; ++j) {
          const float weight = W[static_cast<size_t>(number) * kLabelLanes + static_cast<size_t>(j)];
          *entry = {number, static_cast<uint8_t>(group - first + j), weight * lengths.ratio[j]};
          entry += is_kept(weight, threshold);
        }
        w.count[number] += static_cast<uint32_t>(entry - none);
      }
      n_entries = static_cast<size_t>(entry - w.entries.data());
      for (int j = 0; j < n_labels; ++j)
        out.bias[group - first + j] =
            lanes_.bias * W[w.feature.size() * kLabelLanes + static_cast<size_t>(j)];
    }
    // Entries by feature; within a feature they come slot by slot, as they were made.
    uint32_t total = 0;
    out.row_start.push_back(0);
    for (const uint32_t number : w.by_feature) {
      const uint32_t size = w.count[number];
      w.count[number] = total;
      total += size;
      if (size == 0) continue;
      out.feature.push_back(w.feature[number]);
      out.row_start.push_back(total);
    }
    out.slot.resize(total);
    out.weight.resize(total);
    for (const auto& e : std::span(w.entries).first(n_entries)) {
      const uint32_t at = w.count[e.number]++;
      out.slot[at] = e.slot;
      out.weight[at] = e.weight;
    }
    return out;
  }

  void targets(int64_t group, int n_labels, Worker& w) const {
    w.lanes.target.assign(static_cast<size_t>(w.rows.n_rows) * kLabelLanes, 0.0f);
    for (int j = 0; j < n_labels; ++j)
      below_.visit(group + j, [&](int32_t row, float relevance) {
        const size_t i = w.position[row];
        w.lanes.target[i * kLabelLanes + static_cast<size_t>(j)] =
            lanes_.loss == LinearLoss::logistic ? relevance / w.reaching[i].relevance : 1.0f;
      });
  }

  SparseRows X_;
  const FeatureOrder& order_;
  const RowsBelow& below_;
  const Visitors& visitors_;
  In1<float> row_cost_;
  LabelTreeOptions options_;
  LaneOptions lanes_;
};

// The leaf nodes, not trained yet, that each row of X reaches below a root, at most `options.visitors` of them.
Visitors leaf_visitors(const HierarchyView& tree, int32_t root, const Blocks& blocks, const SparseRows& X,
                       int64_t n_features, const LabelTreeOptions& options, int n_threads) {
  constexpr int64_t kRows = 1024;
  const int64_t n_blocks = (X.n_rows + kRows - 1) / kRows;
  std::vector<std::vector<Visit>> reached(static_cast<size_t>(n_blocks));
  parallel_for(n_blocks, n_threads, 1, [&](int64_t task, int64_t, int) {
    const int64_t first = task * kRows, n = std::min(kRows, X.n_rows - first);
    std::vector<SparseRow> rows;
    for (int64_t i = 0; i < n; ++i) rows.push_back(X.row(first + i));
    TopLists leaves;
    leaves.reset(n, options.visitors);
    TreeSearch(n_features).run(
        rows, root, options.visitors, options.link, blocks,
        [&](const Visit& visit) {
          const int64_t b = blocks.node_block[visit.node];
          const bool trained = b < blocks.node_block[visit.node + 1] && !blocks.encoded[b].bias.empty();
          if (!trained) leaves.push(visit.row, visit.cost, visit.node);
          return trained;
        },
        [&](TopLists& open, const Visit& visit, const float* costs, int64_t first_slot, int32_t n_slots) {
          for (int32_t s = 0; s < n_slots; ++s)
            if (const int32_t child = tree.child(first_slot + s); child >= 0)
              open.push(visit.row, visit.cost + costs[s], child);
        });
    for (int64_t i = 0; i < n; ++i) {
      int64_t m;
      const CostKey* best = leaves.best(i, &m);
      for (int64_t j = 0; j < m; ++j)
        reached[task].push_back({best[j].id(), static_cast<int32_t>(first + i), best[j].cost()});
    }
  });
  Visitors out(blocks.node_block.size() - 1);
  for (const auto& visits : reached)
    for (const Visit& v : visits) out[v.node].push_back(v.row);
  out[root].clear();  // all rows are below
  return out;
}

int64_t require_labels(const LabelRows& labels, int64_t n_rows) {
  require(labels.indptr.shape(0) >= 1, "label_indptr must have at least one entry");
  const auto n_labels = static_cast<int64_t>(labels.indptr.shape(0)) - 1;
  require_pairs(labels.indptr, labels.rows, n_labels, n_rows);
  require(labels.relevance.shape(0) == labels.rows.shape(0), "relevance must have one value a pair");
  for (size_t p = 0; p < labels.relevance.shape(0); ++p)
    require(labels.relevance(p) > 0.0f && labels.relevance(p) <= 1.0f, "relevance must lie in (0, 1]");
  return n_labels;
}

void require_options(const LabelTreeOptions& options) {
  require(options.loss >= LinearLoss::hinge && options.loss <= LinearLoss::logistic,
          "loss must be 0 (hinge), 1 (squared hinge) or 2 (logistic)");
  require(options.C > 0.0 && std::isfinite(options.C), "C must be positive and finite");
  require(options.link >= Link::logistic && static_cast<int>(options.link) < kLinks,
          "link must be one of those of block_scores.h");
  require(options.tolerance > 0.0 && options.max_epochs >= 1 && options.threshold >= 0.0,
          "tolerance, max_epochs and threshold must be positive");
}

}  // namespace

TrainedTrees train_label_trees(const CsrView& rows, const LabelRows& labels, const In1<float>& row_cost,
                               const HierarchyView& tree, const LabelTreeOptions& options, int n_threads) {
  const SparseRows X = require_csr(rows);
  require(X.n_rows >= 1, "X must have at least one row");
  const int64_t n_labels = require_labels(labels, X.n_rows);
  require(static_cast<int64_t>(row_cost.shape(0)) == X.n_rows, "row_cost must have one value a row");
  for (size_t i = 0; i < row_cost.shape(0); ++i)
    require(row_cost(i) > 0.0f && std::isfinite(row_cost(i)), "row_cost must be positive and finite");
  require_options(options);
  const std::vector<int64_t> tree_start = require_hierarchy(tree.roots, tree.child_start, tree.child, n_labels);
  const int64_t n_nodes = tree_start.back();

  const RowsBelow below(tree, labels, X.n_rows, tree_start, n_threads);
  const FeatureOrder order(X, X.indptr[X.n_rows], rows.n_columns);
  std::vector<float> frac(static_cast<size_t>(n_nodes));
  for (int64_t node = 0; node < n_nodes; ++node)
    frac[node] = static_cast<float>(static_cast<double>(below.of(node).size()) / static_cast<double>(X.n_rows));
  Blocks blocks(tree.child_start);
  Visitors visitors(static_cast<size_t>(n_nodes));
  const Trainer trainer(X, order, below, visitors, row_cost, options);
  std::vector<Worker> workers;
  const auto train = [&](const std::vector<int64_t>& nodes, const auto& trained) {
    workers = std::vector<Worker>(static_cast<size_t>(std::max(1, n_threads)));
    parallel_for(static_cast<int64_t>(nodes.size()), n_threads, 1, [&](int64_t at, int64_t, int worker) {
      trainer.train(nodes[at], blocks, workers[worker]);
      trained(nodes[at]);
    });
  };
  std::vector<int64_t> inner, leaves;
  std::vector<char> ready(static_cast<size_t>(n_nodes), 0);
  // The longest of the inner nodes first, so that no thread is left with a large one at the end.
  const auto n_steps = [&](int64_t node) {
    const int64_t groups = (tree.child_start(node + 1) - tree.child_start(node) + kLabelLanes - 1) / kLabelLanes;
    return static_cast<int64_t>(below.of(node).size()) * (groups + 1);
  };
  // Tree by tree, the leaves in order, so that few wait for one before them when they are collected.
  WeightCollector collector;
  std::mutex mutex;
  int64_t next = 0;
  for (size_t t = 0; t + 1 < tree_start.size(); ++t) {
    inner.clear();
    leaves.clear();
    for (int64_t node = tree_start[t]; node < tree_start[t + 1]; ++node) {
      const int32_t* child = tree.child.data();
      ready[node] = std::any_of(child + tree.child_start(node), child + tree.child_start(node + 1),
                                [](int32_t c) { return c >= 0; });
      (ready[node] ? inner : leaves).push_back(node);
    }
    std::stable_sort(inner.begin(), inner.end(), [&](int64_t a, int64_t b) { return n_steps(a) > n_steps(b); });
    train(inner, [](int64_t) {});
    if (options.visitors > 0)
      visitors = leaf_visitors(tree, tree.roots(t), blocks, X, rows.n_columns, options, n_threads);
    train(leaves, [&](int64_t leaf) {
      const std::lock_guard lock(mutex);
      ready[leaf] = 1;
      for (; next < tree_start[t + 1] && ready[next]; ++next)
        for (int64_t b = blocks.node_block[next]; b < blocks.node_block[next + 1]; ++b)
          collector.append(std::move(blocks.encoded[b]));
    });
  }
  workers.clear();
  return {std::move(collector).collected(std::move(blocks.node_block)), std::move(frac)};
}

}  // namespace metarank
