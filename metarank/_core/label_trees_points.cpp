// Labelwise prediction: the best rows of each label (Prabhu et al. 2020, algorithm 1).
//
// Level by level: a node passes on to each child the rows of smallest path cost, as many as the child's
// share of training points allows. A level is cut into tasks of one block and a range of a node's rows,
// whose best rows are put together afterwards.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>

#include "label_trees.h"
#include "top_lists.h"
#include "parallel.h"

namespace metarank {

namespace {

constexpr int64_t kRowsPerChunk = 64;
constexpr int64_t kRowsPerTask = 1 << 15;
constexpr int64_t kLabelsPerBlock = 4096;
constexpr int64_t kOfOneOfSeveral = 100;  // rows of a label that each of several trees finds at least

using Points = std::vector<CostKey>;  // rows and the costs of their paths; of equal costs smaller rows come first

bool by_row(const CostKey& a, const CostKey& b) { return a.id() < b.id(); }

struct OpenNode {
  int32_t node;
  Points points;  // by row
};

struct Task {
  size_t open;  // position in the level
  int64_t block, begin, end;
  std::vector<Points> best;  // by slot of the block
};

}  // namespace

// One tree's search.
class LabelTrees::Descent {
 public:
  Descent(const LabelTrees& trees, const SparseRows& X, const double* frac, double factor, int64_t k, int n_threads)
      : trees_(trees), X_(X), frac_(frac), factor_(factor), k_(k), n_threads_(n_threads) {}

  // Each label's k best rows, by row.
  std::vector<Points> search(int32_t root) {
    std::vector<Points> found(static_cast<size_t>(trees_.n_labels_));
    std::vector<OpenNode> level;
    if (!trees_.empty(root) && X_.n_rows > 0) {
      level.push_back({root, {}});
      for (int64_t i = 0; i < X_.n_rows; ++i) level[0].points.emplace_back(0.0f, static_cast<int32_t>(i));
    }
    while (!level.empty()) level = next_level(level, found);
    return found;
  }

 private:
  int64_t kept(int32_t child) const {
    if (child < 0) return std::min(k_, X_.n_rows);
    const double most = std::ceil(factor_ * frac_[child] * static_cast<double>(X_.n_rows));
    return static_cast<int64_t>(std::min(most, static_cast<double>(X_.n_rows)));
  }

  std::vector<OpenNode> next_level(const std::vector<OpenNode>& level, std::vector<Points>& found) const {
    const WeightBlocksView& view = trees_.weights_.view();
    std::vector<Task> tasks;
    for (size_t o = 0; o < level.size(); ++o)
      for (int64_t b = view.node_block[level[o].node]; b < view.node_block[level[o].node + 1]; ++b)
        for (int64_t begin = 0, n = static_cast<int64_t>(level[o].points.size()); begin < n; begin += kRowsPerTask)
          tasks.push_back({o, b, begin, std::min(begin + kRowsPerTask, n), {}});
    std::vector<std::unique_ptr<Worker>> workers(static_cast<size_t>(n_threads_));
    parallel_for(static_cast<int64_t>(tasks.size()), n_threads_, 1, [&](int64_t begin, int64_t end, int w) {
      auto& worker = workers[w];
      if (!worker) worker = std::make_unique<Worker>(trees_.n_features());
      for (int64_t t = begin; t < end; ++t) run(level[tasks[t].open], tasks[t], *worker);
    });

    std::vector<OpenNode> next;
    for (size_t first = 0; first < tasks.size();) {  // tasks of one block: ranges of the same node's rows
      size_t last = first;
      while (last < tasks.size() && tasks[last].block == tasks[first].block) ++last;
      for (size_t s = 0; s < tasks[first].best.size(); ++s) {
        const int32_t child = trees_.child_.data()[view.block_slot[tasks[first].block] + static_cast<int64_t>(s)];
        Points points;
        for (size_t t = first; t < last; ++t) {
          points.insert(points.end(), tasks[t].best[s].begin(), tasks[t].best[s].end());
          tasks[t].best[s] = {};
        }
        keep_first(points, kept(child));
        std::sort(points.begin(), points.end(), by_row);
        if (child < 0)
          found[~child] = std::move(points);
        else if (!points.empty())
          next.push_back({child, std::move(points)});
      }
      first = last;
    }
    return next;
  }

  struct Worker {
    explicit Worker(int64_t n_features)
        : scores(n_features), costs(static_cast<size_t>(kRowsPerChunk * kMaxBlockSlots)) {}
    BlockScores scores;
    std::vector<float> costs;
  };

  void run(const OpenNode& open, Task& task, Worker& worker) const {
    const WeightBlocksView& view = trees_.weights_.view();
    const WeightBlock block = view.block(task.block);
    const int32_t* child = trees_.child_.data() + view.block_slot[task.block];
    task.best.resize(static_cast<size_t>(block.n_slots));
    const CostKey* points = open.points.data();
    int64_t n_values = 0;
    for (int64_t i = task.begin; i < task.end; ++i) n_values += X_.row(points[i].id()).size;
    worker.scores.open(block, n_values);
    const int64_t stride = worker.scores.stride();
    for (int64_t begin = task.begin; begin < task.end; begin += kRowsPerChunk) {
      const int64_t m = std::min(kRowsPerChunk, task.end - begin);
      SparseRow rows[kRowsPerChunk];
      const SparseRow* chunk[kRowsPerChunk];
      for (int64_t i = 0; i < m; ++i) {
        rows[i] = X_.row(points[begin + i].id());
        chunk[i] = &rows[i];
      }
      worker.scores.margins(chunk, m, worker.costs.data());
      edge_costs(trees_.link_, worker.costs.data(), m * stride);
      for (int32_t s = 0; s < block.n_slots; ++s) {
        const int64_t k = kept(child[s]);
        if (k == 0) continue;
        Points& best = task.best[s];
        const float path_weight = child[s] < 0 ? trees_.path_weight_ : 1.0f;
        const float own = trees_.slot_cost_[view.block_slot[task.block] + s];
        for (int64_t i = 0; i < m; ++i)
          best.emplace_back(path_weight * points[begin + i].cost() + worker.costs[i * stride + s] + own,
                            points[begin + i].id());
        if (static_cast<int64_t>(best.size()) > 2 * k + kRowsPerChunk) keep_first(best, k);
      }
    }
    worker.scores.close();
    for (int32_t s = 0; s < block.n_slots; ++s) keep_first(task.best[s], kept(child[s]));
  }

  const LabelTrees& trees_;
  SparseRows X_;
  const double* frac_;
  double factor_;
  int64_t k_;
  int n_threads_;
};

LabelLists LabelTrees::points(const CsrView& view, In1<double> frac, double factor, int64_t k, int n_threads) const {
  require(k >= 1, "k must be positive");
  require(factor > 0 && std::isfinite(factor), "factor must be positive and finite");
  const SparseRows X = require_rows(view, n_features());
  require(X.n_rows <= std::numeric_limits<int32_t>::max(), "X must have fewer than 2^31 rows");
  require(static_cast<int64_t>(frac.shape(0)) == n_nodes(), "frac must have one entry a node");
  for (int64_t n = 0; n < n_nodes(); ++n) require(frac(n) >= 0 && frac(n) <= 1, "frac must lie in [0, 1]");
  std::vector<std::vector<Scored>> rows_of(static_cast<size_t>(n_labels_));
  const int64_t of_tree = n_trees() == 1 ? k : std::max(k, kOfOneOfSeveral);
  for (int64_t t = 0; t < n_trees(); ++t) {
    const std::vector<Points> found = Descent(*this, X, frac.data(), factor, of_tree, n_threads).search(roots_(t));
    for (size_t l = 0; l < found.size(); ++l)
      for (const CostKey& p : found[l]) {
        float probability = p.cost();
        probabilities(&probability, 1);
        rows_of[l].push_back({probability, p.id()});
      }
  }
  // Means over the trees; a row that a tree does not find has probability 0 there.
  const auto by_row = [](const Scored& a, const Scored& b) { return a.label < b.label; };
  for (std::vector<Scored>& rows : rows_of) {
    std::stable_sort(rows.begin(), rows.end(), by_row);
    size_t n = 0;
    for (const Scored& row : rows) {
      if (n > 0 && rows[n - 1].label == row.label)
        rows[n - 1].score += row.score;
      else
        rows[n++] = row;
    }
    rows.resize(n);
    for (Scored& row : rows) row.score = static_cast<float>(row.score / static_cast<double>(n_trees()));
  }
  return ListsOfRows::of(n_labels_, n_threads, kLabelsPerBlock, [&](int64_t begin, int64_t end, ListsOfRows& lists) {
    for (int64_t l = begin; l < end; ++l) {
      keep_best(rows_of[l], k);
      lists.add(rows_of[l]);
      lists.end_row();
    }
  });
}

}  // namespace metarank
