#include "instance_trees.h"

#include <cmath>
#include <limits>
#include <memory>

#include "elementary.h"
#include "instance_tree_split.h"
#include "label_sums.h"
#include "scored_lists.h"
#include "scratch_pool.h"
#include "parallel.h"

namespace metarank {

namespace {

// Rows that go down a tree together: their leaves are kept, and the tree stays in the cache.
constexpr std::int64_t kBlock = 512;

void require_ascending(const In1<std::int64_t>& start, const In1<std::int32_t>& ids, std::int64_t end,
                       const char* name) {
  for (std::size_t i = 0; i + 1 < start.shape(0); ++i) {
    std::int64_t before = -1;
    for (std::int64_t p = start(i); p < start(i + 1); ++p) {
      const std::int32_t id = ids.data()[p];
      require(id > before && id < end, std::string(name) + " must ascend within a node, below " + std::to_string(end));
      before = id;
    }
  }
}

// exp(s) in the order of s, also where s is so small that float32 would lose it: below -60, s is bent to
// -60 - log(1 - 60 - s).
float bent_exp(double s) {
  constexpr double kBent = -60.0;
  return static_cast<float>(elementary::exp(s < kBent ? kBent - elementary::log1p(kBent - s) : s));
}

void require_finite(const In1<float>& values, const char* message) {
  for (std::size_t p = 0; p < values.shape(0); ++p) require(std::isfinite(values.data()[p]), message);
}

}  // namespace

InstanceTrees::InstanceTrees(std::int64_t n_features, std::int64_t n_labels, const InstanceTreeViews& arrays)
    : n_features_(n_features),
      n_labels_(n_labels),
      roots_(arrays.roots),
      child_(arrays.child),
      bias_(arrays.bias),
      weight_start_(arrays.weight_start),
      feature_(arrays.feature),
      weight_(arrays.weight),
      leaf_start_(arrays.leaf_start),
      leaf_label_(arrays.leaf_label),
      leaf_value_(arrays.leaf_value),
      pool_(new_pool()) {
  const auto n_nodes = static_cast<std::int64_t>(bias_.shape(0));
  require(n_features >= 0 && n_labels >= 0, "n_features and n_labels must not be negative");
  require(roots_.shape(0) >= 1, "there must be at least one tree");
  require(child_.shape(0) == 2 * bias_.shape(0) && weight_start_.shape(0) == bias_.shape(0) + 1,
          "child must have two entries a node, weight_start one a node and one more");
  require(feature_.shape(0) == weight_.shape(0) && leaf_label_.shape(0) == leaf_value_.shape(0),
          "features and labels must have a value each");
  require_indptr(weight_start_, static_cast<std::int64_t>(feature_.shape(0)), "weight_start");
  require_indptr(leaf_start_, static_cast<std::int64_t>(leaf_label_.shape(0)), "leaf_start");
  // A child stands behind its parent, so that no path is endless.
  for (std::size_t t = 0; t < roots_.shape(0); ++t)
    require(roots_.data()[t] < n_nodes && ~roots_.data()[t] < n_leaves(), "roots must be nodes or leaves");
  for (std::size_t s = 0; s < child_.shape(0); ++s) {
    const std::int32_t c = child_.data()[s];
    require(c < 0 ? ~c < n_leaves() : c < n_nodes && c > static_cast<std::int64_t>(s / 2),
            "a child must be a leaf, or a node behind its parent");
  }
  require_ascending(weight_start_, feature_, n_features, "features");
  require_ascending(leaf_start_, leaf_label_, n_labels, "labels");
  require_finite(bias_, "biases must be finite");
  require_finite(weight_, "weights must be finite");
  for (std::size_t p = 0; p < leaf_value_.shape(0); ++p)
    require(leaf_value_.data()[p] >= 0 && std::isfinite(leaf_value_.data()[p]), "leaf values must be finite, >= 0");
}

// One worker: where the rows of a block end, and the sums over their leaves.
class InstanceTrees::Worker {
 public:
  explicit Worker(const InstanceTrees& trees)
      : trees_(trees), dense_(static_cast<std::size_t>(trees.n_features()), 0.0f), sums_(trees.n_labels()) {}

  // leaf[i * trees + t] of rows begin .. end.
  void walk(const QueryRows& X, std::int64_t begin, std::int64_t end, std::int32_t* leaf) {
    const std::int64_t n = end - begin, n_trees = trees_.n_trees();
    const std::vector<SparseRow>& rows = reader_.read(X, n, [&](std::int64_t i) { return begin + i; });
    // A row is spread over all features once for as many trees as a cache holds.
    for (std::int64_t first = 0; first < n_trees; first += kTrees) {
      const std::int64_t last = std::min(n_trees, first + kTrees);
      for (std::int64_t i = 0; i < n; ++i) {
        const SparseRow& row = rows[static_cast<std::size_t>(i)];
        for (std::int64_t p = 0; p < row.size; ++p) dense_[static_cast<std::size_t>(row.index[p])] = row.value[p];
        for (std::int64_t t = first; t < last; ++t) leaf[i * n_trees + t] = descend(trees_.roots_.data()[t]);
        for (std::int64_t p = 0; p < row.size; ++p) dense_[static_cast<std::size_t>(row.index[p])] = 0.0f;
      }
    }
  }

  // The lists of rows begin .. end, behind those there are.
  void list(const QueryRows& X, std::int64_t begin, std::int64_t end, std::int64_t k, const Reranking* reranking,
            LabelMeanIndex::Products<float>* products, ScoredLists& out) {
    const std::int64_t n_trees = trees_.n_trees();
    leaf_.resize(static_cast<std::size_t>((end - begin) * n_trees));
    walk(X, begin, end, leaf_.data());
    const std::int64_t* start = trees_.leaf_start_.data();
    for (std::int64_t i = 0; i < end - begin; ++i) {
      for (std::int64_t t = 0; t < n_trees; ++t) {
        const std::int32_t leaf = leaf_[static_cast<std::size_t>(i * n_trees + t)];
        sums_.add(trees_.leaf_label_.data() + start[leaf], trees_.leaf_value_.data() + start[leaf],
                  start[leaf + 1] - start[leaf]);
      }
      sums_.divide(static_cast<float>(n_trees));
      if (reranking != nullptr) {
        rerank(X, begin + i, k, *reranking, *products, out);
      } else {
        for (const std::int32_t label : sums_.best(k)) {
          const float score = sums_.of(label);
          if (!(score > 0.0f)) continue;
          out.ids.push_back(label);
          out.scores.push_back(score);
        }
      }
      sums_.clear();
      out.indptr.push_back(static_cast<std::int64_t>(out.ids.size()));
    }
  }

 private:
  static constexpr std::int64_t kTrees = 4;

  struct Scored {
    double score;
    std::int32_t label;
    bool operator<(const Scored& other) const {  // the better one first
      return score > other.score || (score == other.score && label < other.label);
    }
  };

  // The list of row i from what its leaves sum up to.
  void rerank(const QueryRows& X, std::int64_t i, std::int64_t k, const Reranking& by,
              LabelMeanIndex::Products<float>& x, ScoredLists& out) {
    const std::vector<std::int32_t>& labels =
        by.n_labels < static_cast<std::int64_t>(sums_.labels().size()) ? sums_.best(by.n_labels) : sums_.labels();
    x.open({X.indices + X.indptr[i], X.data + X.indptr[i], X.indptr[i + 1] - X.indptr[i]}, labels.data(),
           static_cast<std::int64_t>(labels.size()));
    scored_.clear();
    for (const std::int32_t label : labels) {
      const double p = sums_.of(label);
      if (!(p > 0)) continue;
      const double s = by.alpha * elementary::log(p) + (1 - by.alpha) * by.tail.log_of(x, label);
      // Where values overflow, infinities may cancel: NaN has no place in an order.
      scored_.push_back({std::isnan(s) ? -std::numeric_limits<double>::infinity() : s, label});
    }
    const auto n = std::min(static_cast<std::ptrdiff_t>(k), static_cast<std::ptrdiff_t>(scored_.size()));
    if (n < static_cast<std::ptrdiff_t>(scored_.size()))
      std::nth_element(scored_.begin(), scored_.begin() + n, scored_.end());
    std::sort(scored_.begin(), scored_.begin() + n,
              [](const Scored& a, const Scored& b) { return a.label < b.label; });
    for (std::ptrdiff_t j = 0; j < n; ++j) {
      out.ids.push_back(scored_[static_cast<std::size_t>(j)].label);
      out.scores.push_back(bent_exp(scored_[static_cast<std::size_t>(j)].score));
    }
  }

  std::int32_t descend(std::int32_t node) const {
    const std::int64_t* start = trees_.weight_start_.data();
    while (node >= 0) {
      const float margin = margin_of(trees_.bias_.data()[node], dense_.data(), trees_.feature_.data() + start[node],
                                     trees_.weight_.data() + start[node], start[node + 1] - start[node]);
      node = trees_.child_.data()[2 * node + (margin > 0.0f)];
    }
    return ~node;
  }

  const InstanceTrees& trees_;
  RowReader reader_;
  std::vector<float> dense_;
  LabelSums sums_;
  std::vector<std::int32_t> leaf_;
  std::vector<Scored> scored_;
};

class InstanceTrees::WorkerPool : public ScratchPool<Worker> {};

std::shared_ptr<InstanceTrees::WorkerPool> InstanceTrees::new_pool() { return std::make_shared<WorkerPool>(); }

Array2<std::int32_t> InstanceTrees::leaves(const QueryRows& X, int n_threads) const {
  require(n_threads >= 1, "n_threads must be positive");
  return to_array(leaf_numbers(X, n_threads), static_cast<std::size_t>(X.n_rows), static_cast<std::size_t>(n_trees()));
}

std::vector<std::int32_t> InstanceTrees::leaf_numbers(const QueryRows& X, int n_threads) const {
  std::vector<std::int32_t> out(static_cast<std::size_t>(X.n_rows * n_trees()));
  std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(n_threads));
  parallel_for(X.n_rows, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int w) {
    auto& worker = workers[static_cast<std::size_t>(w)];
    if (!worker) worker = pool_->take([&] { return std::make_unique<Worker>(*this); });
    worker->walk(X, begin, end, out.data() + begin * n_trees());
  });
  if (X.n_rows <= WorkerPool::kMostRows && workers[0]) pool_->give_back(std::move(workers[0]));
  return out;
}

InstanceTrees::Lists InstanceTrees::top(const QueryRows& X, std::int64_t k, const Reranking* reranking,
                                        int n_threads) const {
  require(k >= 1 && n_threads >= 1, "k and n_threads must be positive");
  if (reranking != nullptr) {
    require(reranking->n_labels >= 1, "reranked must be positive");
    require(reranking->means.n_labels() == n_labels_ && reranking->means.n_features() == n_features_,
            "means must be of the forest's labels and features");
    require(reranking->alpha >= 0 && reranking->alpha <= 1 && reranking->tail.gamma > 0,
            "alpha must lie in [0, 1], gamma must be positive");
  }
  k = std::min(k, std::max<std::int64_t>(1, n_labels_));
  ScoredLists lists;
  lists.indptr.assign(1, 0);
  // A block's lists by themselves: how long they are is not known before.
  std::vector<ScoredLists> blocks(static_cast<std::size_t>((X.n_rows + kBlock - 1) / kBlock));
  std::vector<std::unique_ptr<Worker>> workers(static_cast<std::size_t>(n_threads));
  std::vector<std::unique_ptr<LabelMeanIndex::Products<float>>> products(static_cast<std::size_t>(n_threads));
  if (reranking != nullptr) reranking->means.announce(X.n_rows * std::min(n_labels_, reranking->n_labels));
  parallel_for(X.n_rows, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int w) {
    auto& worker = workers[static_cast<std::size_t>(w)];
    if (!worker) worker = pool_->take([&] { return std::make_unique<Worker>(*this); });
    auto& of_means = products[static_cast<std::size_t>(w)];
    if (reranking != nullptr && !of_means) of_means = reranking->means.take<float>();
    worker->list(X, begin, end, k, reranking, of_means.get(), blocks[static_cast<std::size_t>(begin / kBlock)]);
  });
  if (X.n_rows <= WorkerPool::kMostRows && workers[0]) pool_->give_back(std::move(workers[0]));
  if (reranking != nullptr) reranking->means.give_back(std::move(products[0]), X.n_rows);
  std::size_t total = 0;
  for (const ScoredLists& block : blocks) total += block.ids.size();
  lists.indptr.reserve(static_cast<std::size_t>(X.n_rows) + 1);
  lists.ids.reserve(total);
  lists.scores.reserve(total);
  for (ScoredLists& block : blocks) {
    const auto before = static_cast<std::int64_t>(lists.ids.size());
    for (const std::int64_t end : block.indptr) lists.indptr.push_back(before + end);
    lists.ids.insert(lists.ids.end(), block.ids.begin(), block.ids.end());
    lists.scores.insert(lists.scores.end(), block.scores.begin(), block.scores.end());
    block = ScoredLists();
  }
  return {to_array(std::move(lists.indptr)), to_array(std::move(lists.ids)), to_array(std::move(lists.scores))};
}

InstanceTrees::Columns InstanceTrees::pairs(const QueryRows& X, const In1<std::int64_t>& indptr,
                                            const In1<std::int32_t>& labels, bool by_tree, int n_threads) const {
  require(n_threads >= 1, "n_threads must be positive");
  require_pairs(indptr, labels, X.n_rows, n_labels_);
  std::vector<float> mean(labels.shape(0)), per_tree(by_tree ? labels.shape(0) * static_cast<std::size_t>(n_trees()) : 0);
  const std::vector<std::int32_t> leaf = leaf_numbers(X, n_threads);
  parallel_for(X.n_rows, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i)
      for (std::int64_t q = indptr.data()[i]; q < indptr.data()[i + 1]; ++q) {
        float sum = 0.0f;
        for (std::int64_t t = 0; t < n_trees(); ++t) {
          const std::int32_t at = leaf[static_cast<std::size_t>(i * n_trees() + t)];
          const std::int32_t* first = leaf_label_.data() + leaf_start_.data()[at];
          const std::int32_t* last = leaf_label_.data() + leaf_start_.data()[at + 1];
          const std::int32_t* place = std::lower_bound(first, last, labels.data()[q]);
          const float value = place != last && *place == labels.data()[q] ? leaf_value_.data()[place - leaf_label_.data()] : 0.0f;
          sum += value;
          if (by_tree) per_tree[static_cast<std::size_t>(q * n_trees() + t)] = value;
        }
        mean[static_cast<std::size_t>(q)] = sum / static_cast<float>(n_trees());
      }
  });
  std::optional<Array2<float>> columns;
  if (by_tree) columns = to_array(std::move(per_tree), labels.shape(0), static_cast<std::size_t>(n_trees()));
  return {to_array(std::move(mean)), std::move(columns)};
}

}  // namespace metarank
