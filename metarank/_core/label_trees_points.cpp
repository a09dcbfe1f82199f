// Labelwise prediction: the best rows of each label (Prabhu et al. 2020, algorithm 1).
//
// Level by level: a node passes on to each child the rows of smallest path cost, as many as the child's
// share of training points allows. A level is cut into tasks of one block and a range of a node's rows,
// whose best rows are put together afterwards.
#include <algorithm>
#include <cmath>
#include <memory>

#include "label_trees.h"
#include "top_lists.h"
#include "parallel.h"

namespace metarank {

namespace {

constexpr std::int64_t kRowsPerChunk = 64;
constexpr std::int64_t kRowsPerTask = 1 << 15;

using Points = std::vector<CostKey>;  // rows and the costs of their paths

// The k of smallest cost; equal costs: smaller rows first.
void keep_best(Points& points, std::int64_t k) {
  const auto n = static_cast<std::size_t>(k);
  if (points.size() <= n) return;
  std::nth_element(points.begin(), points.begin() + static_cast<std::ptrdiff_t>(n), points.end());
  points.resize(n);
}

bool by_row(const CostKey& a, const CostKey& b) { return a.id() < b.id(); }

struct OpenNode {
  std::int32_t node;
  Points points;  // by row
};

struct Task {
  std::size_t open;  // position in the level
  std::int64_t block, begin, end;
  std::vector<Points> best;  // by slot of the block
};

}  // namespace

// One tree's search.
class LabelTrees::Descent {
 public:
  Descent(const LabelTrees& trees, const QueryRows& X, const double* frac, double factor, std::int64_t k, int n_threads)
      : trees_(trees), X_(X), frac_(frac), factor_(factor), k_(k), n_threads_(n_threads) {}

  // Each label's k best rows, by row.
  std::vector<Points> search(std::int32_t root) {
    std::vector<Points> found(static_cast<std::size_t>(trees_.n_labels_));
    std::vector<OpenNode> level;
    if (!trees_.empty(root) && X_.n_rows > 0) {
      level.push_back({root, {}});
      for (std::int64_t i = 0; i < X_.n_rows; ++i) level[0].points.emplace_back(0.0f, static_cast<std::int32_t>(i));
    }
    while (!level.empty()) level = next_level(level, found);
    return found;
  }

 private:
  std::int64_t kept(std::int32_t child) const {
    if (child < 0) return std::min(k_, X_.n_rows);
    const double most = std::ceil(factor_ * frac_[child] * static_cast<double>(X_.n_rows));
    return static_cast<std::int64_t>(std::min(most, static_cast<double>(X_.n_rows)));
  }

  std::vector<OpenNode> next_level(const std::vector<OpenNode>& level, std::vector<Points>& found) const {
    const WeightBlocksView& view = trees_.weights_.view();
    std::vector<Task> tasks;
    for (std::size_t o = 0; o < level.size(); ++o)
      for (std::int64_t b = view.node_block[level[o].node]; b < view.node_block[level[o].node + 1]; ++b)
        for (std::int64_t begin = 0, n = static_cast<std::int64_t>(level[o].points.size()); begin < n; begin += kRowsPerTask)
          tasks.push_back({o, b, begin, std::min(begin + kRowsPerTask, n), {}});
    std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(n_threads_));
    parallel_for(static_cast<std::int64_t>(tasks.size()), n_threads_, 1,
                 [&](std::int64_t begin, std::int64_t end, int w) {
                   auto& worker = workers[static_cast<std::size_t>(w)];
                   if (!worker) worker = std::make_unique<Worker>(trees_.n_features());
                   for (std::int64_t t = begin; t < end; ++t)
                     run(level[tasks[static_cast<std::size_t>(t)].open], tasks[static_cast<std::size_t>(t)], *worker);
                 });

    std::vector<OpenNode> next;
    for (std::size_t first = 0; first < tasks.size();) {  // tasks of one block: ranges of the same node's rows
      std::size_t last = first;
      while (last < tasks.size() && tasks[last].block == tasks[first].block) ++last;
      for (std::size_t s = 0; s < tasks[first].best.size(); ++s) {
        const std::int32_t child = trees_.child_.data()[view.block_slot[tasks[first].block] + static_cast<std::int64_t>(s)];
        Points points;
        for (std::size_t t = first; t < last; ++t) {
          points.insert(points.end(), tasks[t].best[s].begin(), tasks[t].best[s].end());
          tasks[t].best[s] = {};
        }
        keep_best(points, kept(child));
        std::sort(points.begin(), points.end(), by_row);
        if (child < 0)
          found[static_cast<std::size_t>(~child)] = std::move(points);
        else if (!points.empty())
          next.push_back({child, std::move(points)});
      }
      first = last;
    }
    return next;
  }

  struct Worker {
    explicit Worker(std::int64_t n_features)
        : scores(n_features), costs(static_cast<std::size_t>(kRowsPerChunk * kMaxBlockSlots)) {}
    RowReader reader;
    BlockScores scores;
    std::vector<float> costs;
  };

  void run(const OpenNode& open, Task& task, Worker& worker) const {
    const WeightBlocksView& view = trees_.weights_.view();
    const WeightBlock block = view.block(task.block);
    const std::int32_t* child = trees_.child_.data() + view.block_slot[task.block];
    task.best.resize(static_cast<std::size_t>(block.n_slots));
    const CostKey* points = open.points.data();
    std::int64_t n_values = (task.end - task.begin) * (X_.indptr == nullptr ? X_.n_features : 0);
    if (X_.indptr != nullptr)
      for (std::int64_t i = task.begin; i < task.end; ++i)
        n_values += X_.indptr[points[i].id() + 1] - X_.indptr[points[i].id()];
    worker.scores.open(block, n_values);
    const std::int64_t stride = worker.scores.stride();
    for (std::int64_t begin = task.begin; begin < task.end; begin += kRowsPerChunk) {
      const std::int64_t m = std::min(kRowsPerChunk, task.end - begin);
      const std::vector<SparseRow>& rows =
          worker.reader.read(X_, m, [&](std::int64_t i) { return static_cast<std::int64_t>(points[begin + i].id()); });
      const SparseRow* chunk[kRowsPerChunk];
      for (std::int64_t i = 0; i < m; ++i) chunk[i] = &rows[static_cast<std::size_t>(i)];
      worker.scores.margins(chunk, m, worker.costs.data());
      edge_costs(trees_.link_, worker.costs.data(), m * stride);
      for (std::int32_t s = 0; s < block.n_slots; ++s) {
        const std::int64_t k = kept(child[s]);
        if (k == 0) continue;
        Points& best = task.best[static_cast<std::size_t>(s)];
        const float path_weight = child[s] < 0 ? trees_.path_weight_ : 1.0f;
        const float own = trees_.slot_cost_[static_cast<std::size_t>(view.block_slot[task.block] + s)];
        for (std::int64_t i = 0; i < m; ++i)
          best.emplace_back(
              path_weight * points[begin + i].cost() + worker.costs[static_cast<std::size_t>(i * stride + s)] + own,
              points[begin + i].id());
        if (static_cast<std::int64_t>(best.size()) > 2 * k + kRowsPerChunk) keep_best(best, k);
      }
    }
    worker.scores.close();
    for (std::int32_t s = 0; s < block.n_slots; ++s) keep_best(task.best[static_cast<std::size_t>(s)], kept(child[s]));
  }

  const LabelTrees& trees_;
  const QueryRows& X_;
  const double* frac_;
  double factor_;
  std::int64_t k_;
  int n_threads_;
};

namespace {

// Each label's k rows of greatest score; ties: smaller rows. The pairs come by row.
ScoredLists best_rows(const std::vector<std::int64_t>& indptr, const std::vector<std::int32_t>& labels,
                      const std::vector<float>& scores, std::int64_t n_labels, std::int64_t k) {
  std::vector<std::int64_t> start(static_cast<std::size_t>(n_labels) + 1, 0);
  for (const std::int32_t l : labels) ++start[static_cast<std::size_t>(l) + 1];
  for (std::size_t l = 1; l < start.size(); ++l) start[l] += start[l - 1];
  struct Scored {
    std::int32_t row;
    float score;
  };
  std::vector<Scored> by_label(labels.size());
  std::vector<std::int64_t> next(start.begin(), start.end() - 1);
  for (std::size_t i = 0; i + 1 < indptr.size(); ++i)
    for (std::int64_t p = indptr[i]; p < indptr[i + 1]; ++p)
      by_label[static_cast<std::size_t>(next[static_cast<std::size_t>(labels[static_cast<std::size_t>(p)])]++)] = {
          static_cast<std::int32_t>(i), scores[static_cast<std::size_t>(p)]};
  ScoredLists out;
  out.indptr.assign(1, 0);
  for (std::size_t l = 0; l + 1 < start.size(); ++l) {
    Scored* first = by_label.data() + start[l];
    Scored* last = by_label.data() + start[l + 1];
    if (last - first > k) {
      std::nth_element(first, first + k, last, [](const Scored& a, const Scored& b) {
        return a.score != b.score ? a.score > b.score : a.row < b.row;
      });
      last = first + k;
      std::sort(first, last, [](const Scored& a, const Scored& b) { return a.row < b.row; });
    }
    for (const Scored* s = first; s < last; ++s) {
      out.ids.push_back(s->row);
      out.scores.push_back(s->score);
    }
    out.indptr.push_back(static_cast<std::int64_t>(out.ids.size()));
  }
  return out;
}

// One tree: what it found is exact already.
ScoredLists to_lists(const std::vector<Points>& found) {
  ScoredLists out;
  out.indptr.assign(1, 0);
  for (const Points& points : found) {
    for (const CostKey& p : points) {
      out.ids.push_back(p.id());
      out.scores.push_back(p.cost());
    }
    out.indptr.push_back(static_cast<std::int64_t>(out.ids.size()));
  }
  probabilities(out.scores.data(), static_cast<std::int64_t>(out.scores.size()));
  return out;
}

}  // namespace

ScoredLists LabelTrees::points(const QueryRows& X, const double* frac, double factor, std::int64_t k,
                               int n_threads) const {
  const auto search = [&](std::int64_t t) {
    return Descent(*this, X, frac, factor, k, n_threads).search(roots_.data()[t]);
  };
  if (n_trees() == 1) return to_lists(search(0));
  // Every pair that some tree found, scored by all of them.
  std::vector<std::uint64_t> pairs;  // row, label
  for (std::int64_t t = 0; t < n_trees(); ++t) {
    const std::vector<Points> found = search(t);
    for (std::size_t l = 0; l < found.size(); ++l)
      for (const CostKey& p : found[l]) pairs.push_back(static_cast<std::uint64_t>(p.id()) << 32 | l);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  std::vector<std::int64_t> indptr(static_cast<std::size_t>(X.n_rows) + 1, 0);
  std::vector<std::int32_t> labels;
  labels.reserve(pairs.size());
  for (const std::uint64_t pair : pairs) {
    ++indptr[static_cast<std::size_t>(pair >> 32) + 1];
    labels.push_back(static_cast<std::int32_t>(pair & 0xffffffffu));
  }
  pairs = {};
  for (std::size_t i = 1; i < indptr.size(); ++i) indptr[i] += indptr[i - 1];
  const PairScores scored = score_pairs(X, indptr.data(), labels.data(), false, n_threads);
  return best_rows(indptr, labels, scored.scores, n_labels_, k);
}

}  // namespace metarank
