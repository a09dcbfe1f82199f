// Instance trees: training and prediction.
#include "../instance_trees.h"

#include "../instance_tree_train.h"
#include "bindings.h"

namespace nanobind::detail {

// By the names of InstanceTrees' constructor.
template <>
struct type_caster<metarank::InstanceTreeArrays> {
  static constexpr auto Name = const_name("dict");

  static handle from_cpp(metarank::InstanceTreeArrays&& trees, rv_policy, cleanup_list*) {
    using metarank::bindings::to_numpy;
    dict out;
    out["roots"] = to_numpy(std::move(trees.roots));
    out["child"] = to_numpy(std::move(trees.child));
    out["bias"] = to_numpy(std::move(trees.bias));
    out["weight_start"] = to_numpy(std::move(trees.weight_start));
    out["feature"] = to_numpy(std::move(trees.feature));
    out["weight"] = to_numpy(std::move(trees.weight));
    out["leaf_start"] = to_numpy(std::move(trees.leaf_start));
    out["leaf_label"] = to_numpy(std::move(trees.leaf_label));
    out["leaf_value"] = to_numpy(std::move(trees.leaf_value));
    return out.release();
  }
};

}  // namespace nanobind::detail

namespace metarank::bindings {

namespace {

using Indptr = In1<std::int64_t>;
using Ids = In1<std::int32_t>;
using Values = In1<float>;

void bind_training(nb::module_& m) {
  bind_options(m, "L1LogisticOptions", Field{"tolerance", &L1Logistic::Options::tolerance},
               Field{"max_steps", &L1Logistic::Options::max_steps}, Field{"max_passes", &L1Logistic::Options::max_passes});
  bind_options(m, "SplitOptions", Field{"log_cost", &SplitOptions::log_cost}, Field{"rank_cost", &SplitOptions::rank_cost},
               Field{"balanced", &SplitOptions::balanced}, Field{"rounds", &SplitOptions::rounds},
               Field{"ideal_normaliser", &SplitOptions::ideal_normaliser}, Field{"logistic", &SplitOptions::logistic});
  bind_options(m, "GrowOptions", Field{"first_tree", &GrowOptions::first_tree}, Field{"n_trees", &GrowOptions::n_trees},
               Field{"max_leaf", &GrowOptions::max_leaf}, Field{"labels_per_leaf", &GrowOptions::labels_per_leaf},
               Field{"max_depth", &GrowOptions::max_depth}, Field{"seed", &GrowOptions::seed});
  bind(m, "train_instance_trees", &train_instance_trees, {"X", "Y", "row_weight", "split", "grow", "n_threads"},
       "Arrays of `InstanceTrees`: trees first_tree .. first_tree + n_trees of a forest, seeded by their number.");
  bind(m, "split_instances", &split_instances, {"X", "Y", "row_weight", "options", "seed"},
       "(w, bias, sides, right, objective after every block) of one node that holds all rows.");
}

}  // namespace

void bind_instance_trees(nb::module_& m) {
  bind_training(m);
  nb::class_<InstanceTrees> trees(m, "InstanceTrees",
                                  "A forest of instance trees ready for prediction. X: CSR arrays.");
  bind_borrower<4, 5, 6, 7, 8, 9, 10, 11, 12>(
      trees,
      [](InstanceTrees* self, std::int64_t n_features, std::int64_t n_labels, Ids roots, Ids child, Values bias,
         Indptr weight_start, Ids feature, Values weight, Indptr leaf_start, Ids leaf_label, Values leaf_value) {
        new (self) InstanceTrees(n_features, n_labels,
                                 {roots, child, bias, weight_start, feature, weight, leaf_start, leaf_label, leaf_value});
      },
      {"n_features", "n_labels", "roots", "child", "bias", "weight_start", "feature", "weight", "leaf_start",
       "leaf_label", "leaf_value"});
  bind(
      trees, "leaves",
      [](const InstanceTrees& t, Indptr indptr, Ids indices, Values data, int n_threads) {
        return t.leaves(require_rows(indptr, indices, data, t.n_features()), n_threads);
      },
      {"x_indptr", "x_indices", "x_data", "n_threads"}, "The leaf each row ends in (rows, trees).");
  bind(
      trees, "top",
      [](const InstanceTrees& t, Indptr indptr, Ids indices, Values data, std::int64_t k, int n_threads) {
        return t.top(require_rows(indptr, indices, data, t.n_features()), k, nullptr, n_threads);
      },
      {"x_indptr", "x_indices", "x_data", "k", "n_threads"}, "(indptr, labels, mean values) of each row's k best labels.");
  bind(
      trees, "top_reranked",
      [](const InstanceTrees& t, Indptr indptr, Ids indices, Values data, std::int64_t k, const LabelMeanIndex& means,
         double gamma, bool unit_means, double alpha, std::int64_t reranked, int n_threads) {
        const Reranking reranking{means, {gamma, unit_means}, alpha, reranked};
        return t.top(require_rows(indptr, indices, data, t.n_features()), k, &reranking, n_threads);
      },
      {"x_indptr", "x_indices", "x_data", "k", "means", "gamma", "unit_means", "alpha", "reranked", "n_threads"},
      "As top, the `reranked` best labels of each row re-ranked by tail classifiers (eq. 8).");
  bind(
      trees, "pairs",
      [](const InstanceTrees& t, Indptr x_indptr, Ids x_indices, Values x_data, Indptr indptr, Ids labels,
         bool by_tree, int n_threads) {
        return t.pairs(require_rows(x_indptr, x_indices, x_data, t.n_features()), indptr, labels, by_tree, n_threads);
      },
      {"x_indptr", "x_indices", "x_data", "indptr", "labels", "by_tree", "n_threads"},
      "(mean values, values by tree or None) of the pairs (row, label).");
}

}  // namespace metarank::bindings
