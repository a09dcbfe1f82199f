#include "instance_trees.h"

#include <cmath>
#include <limits>
#include <memory>

#include "elementary.h"
#include "instance_tree_split.h"
#include "label_sums.h"
#include "lists.h"
#include "scratch_pool.h"
#include "parallel.h"

namespace metarank {

namespace {

// Rows that go down a tree together: their leaves are kept, and the tree stays in the cache.
constexpr int64_t kBlock = 512;

void require_ascending(const In1<int64_t>& start, const In1<int32_t>& ids, int64_t end, const char* name) {
  for (size_t i = 0; i + 1 < start.shape(0); ++i) {
    int64_t before = -1;
    for (int64_t p = start(i); p < start(i + 1); ++p) {
      const int32_t id = ids.data()[p];
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

}  // namespace

InstanceTrees::InstanceTrees(int64_t n_features, int64_t n_labels, const InstanceTreeViews& arrays)
    : n_features_(n_features), n_labels_(n_labels), of_(arrays), pool_(std::make_shared<WorkerPool>()) {
  const auto n_nodes = static_cast<int64_t>(of_.bias.shape(0));
  require(n_features >= 0 && n_labels >= 0, "n_features and n_labels must not be negative");
  require(of_.roots.shape(0) >= 1, "there must be at least one tree");
  require(of_.child.shape(0) == 2 * of_.bias.shape(0) && of_.weight_start.shape(0) == of_.bias.shape(0) + 1,
          "child must have two entries a node, weight_start one a node and one more");
  require(of_.feature.shape(0) == of_.weight.shape(0) && of_.leaf_label.shape(0) == of_.leaf_value.shape(0),
          "features and labels must have a value each");
  require_indptr(of_.weight_start, static_cast<int64_t>(of_.feature.shape(0)), "weight_start");
  require_indptr(of_.leaf_start, static_cast<int64_t>(of_.leaf_label.shape(0)), "leaf_start");
  // A child stands behind its parent, so that no path is endless.
  for (size_t t = 0; t < of_.roots.shape(0); ++t)
    require(of_.roots.data()[t] < n_nodes && ~of_.roots.data()[t] < n_leaves(), "roots must be nodes or leaves");
  for (size_t s = 0; s < of_.child.shape(0); ++s) {
    const int32_t c = of_.child.data()[s];
    require(c < 0 ? ~c < n_leaves() : c < n_nodes && c > static_cast<int64_t>(s / 2),
            "a child must be a leaf, or a node behind its parent");
  }
  require_ascending(of_.weight_start, of_.feature, n_features, "features");
  require_ascending(of_.leaf_start, of_.leaf_label, n_labels, "labels");
  require_finite(of_.bias, "biases");
  require_finite(of_.weight, "weights");
  for (size_t p = 0; p < of_.leaf_value.shape(0); ++p)
    require(of_.leaf_value(p) >= 0 && std::isfinite(of_.leaf_value(p)), "leaf values must be finite, >= 0");
}

// One worker: where the rows of a block end, and the sums over their leaves.
class InstanceTrees::Worker {
 public:
  explicit Worker(const InstanceTrees& trees)
      : trees_(trees), dense_(static_cast<size_t>(trees.n_features()), 0.0f), sums_(trees.n_labels()) {}

  // leaf[i * trees + t] of rows begin .. end.
  void walk(const SparseRows& X, int64_t begin, int64_t end, int32_t* leaf) {
    const int64_t n = end - begin, n_trees = trees_.n_trees();
    // A row is spread over all features once for as many trees as a cache holds.
    for (int64_t first = 0; first < n_trees; first += kTrees) {
      const int64_t last = std::min(n_trees, first + kTrees);
      for (int64_t i = 0; i < n; ++i) {
        const SparseRow row = X.row(begin + i);
        for (int64_t p = 0; p < row.size; ++p) dense_[row.index[p]] = row.value[p];
        for (int64_t t = first; t < last; ++t) leaf[i * n_trees + t] = descend(trees_.of_.roots.data()[t]);
        for (int64_t p = 0; p < row.size; ++p) dense_[row.index[p]] = 0.0f;
      }
    }
  }

  // The lists of rows begin .. end.
  void list(const SparseRows& X, int64_t begin, int64_t end, int64_t k, const Reranking* reranking,
            LabelMeanIndex::Products<float>* products, ListsOfRows& out) {
    const int64_t n_trees = trees_.n_trees();
    leaf_.resize((end - begin) * n_trees);
    walk(X, begin, end, leaf_.data());
    const int64_t* start = trees_.of_.leaf_start.data();
    for (int64_t i = 0; i < end - begin; ++i) {
      for (int64_t t = 0; t < n_trees; ++t) {
        const int32_t leaf = leaf_[i * n_trees + t];
        sums_.add(trees_.of_.leaf_label.data() + start[leaf], trees_.of_.leaf_value.data() + start[leaf],
                  start[leaf + 1] - start[leaf]);
      }
      sums_.divide(static_cast<float>(n_trees));
      if (reranking != nullptr)
        rerank(X.row(begin + i), k, *reranking, *products, out);
      else
        for (const int32_t label : sums_.best(k))
          if (sums_.of(label) > 0.0f) out.add(label, sums_.of(label));
      sums_.clear();
      out.end_row();
    }
  }

 private:
  static constexpr int64_t kTrees = 4;

  // The list of a row from what its leaves sum up to.
  void rerank(const SparseRow& row, int64_t k, const Reranking& by, LabelMeanIndex::Products<float>& x,
              ListsOfRows& out) {
    const std::vector<int32_t>& labels = sums_.labels();
    x.open(row, labels.data(), labels.size());
    scored_.clear();
    for (const int32_t label : labels) {
      const double p = sums_.of(label);
      if (!(p > 0)) continue;
      const double s = by.alpha * elementary::log(p) + (1 - by.alpha) * by.tail.log_of(x, label);
      // Where values overflow, infinities may cancel: NaN has no place in an order.
      scored_.push_back({std::isnan(s) ? -std::numeric_limits<double>::infinity() : s, label});
    }
    keep_best(scored_, k);
    for (const Scored& s : scored_) out.add(s.label, bent_exp(s.score));
  }

  int32_t descend(int32_t node) const {
    const InstanceTreeViews& of = trees_.of_;
    const int64_t* start = of.weight_start.data();
    while (node >= 0) {
      const float margin = margin_of(of.bias(node), dense_.data(), of.feature.data() + start[node],
                                     of.weight.data() + start[node], start[node + 1] - start[node]);
      node = of.child(2 * node + (margin > 0.0f));
    }
    return ~node;
  }

  const InstanceTrees& trees_;
  std::vector<float> dense_;
  LabelSums sums_;
  std::vector<int32_t> leaf_;
  std::vector<Scored> scored_;
};

class InstanceTrees::WorkerPool : public ScratchPool<Worker> {};

LabelLists InstanceTrees::top(const CsrView& view, int64_t k, const Reranking* reranking, int n_threads) const {
  const SparseRows X = require_rows(view, n_features_);
  require(k >= 1, "k must be positive");
  if (reranking != nullptr) {
    require(reranking->means.n_labels() == n_labels_ && reranking->means.n_features() == n_features_,
            "means must be of the forest's labels and features");
    require(reranking->alpha >= 0 && reranking->alpha <= 1 && reranking->tail.gamma > 0,
            "alpha must lie in [0, 1], gamma must be positive");
    reranking->means.announce(X.n_rows * n_labels_);
  }
  return ListsOfRows::of(X.n_rows, n_threads, kBlock, [&](int64_t begin, int64_t end, ListsOfRows& lists) {
    LabelMeanIndex::Lease<float> products;
    if (reranking != nullptr) products = reranking->means.take<float>();
    pool_->take(*this)->list(X, begin, end, k, reranking, products.get(), lists);
  });
}

Array1<float> InstanceTrees::pairs(const CsrView& view, Indptr indptr, Ids labels, int n_threads) const {
  const SparseRows X = require_rows(view, n_features_);
  require_pairs(indptr, labels, X.n_rows, n_labels_);
  std::vector<float> mean(labels.shape(0));
  parallel_for(X.n_rows, n_threads, kBlock, [&](int64_t begin, int64_t end, int) {
    std::vector<int32_t> leaf((end - begin) * n_trees());
    pool_->take(*this)->walk(X, begin, end, leaf.data());
    for (int64_t i = begin; i < end; ++i)
      for (int64_t q = indptr(i); q < indptr(i + 1); ++q) {
        float sum = 0.0f;
        for (int64_t t = 0; t < n_trees(); ++t) {
          const int32_t at = leaf[(i - begin) * n_trees() + t];
          const int32_t* last = of_.leaf_label.data() + of_.leaf_start(at + 1);
          const int32_t* place = std::lower_bound(of_.leaf_label.data() + of_.leaf_start(at), last, labels(q));
          sum += place != last && *place == labels(q) ? of_.leaf_value(place - of_.leaf_label.data()) : 0.0f;
        }
        mean[q] = sum / static_cast<float>(n_trees());
      }
  });
  return to_array(std::move(mean));
}

}  // namespace metarank
