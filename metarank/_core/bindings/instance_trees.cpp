// Instance trees: training and prediction.
#include "../instance_trees.h"

#include "../instance_tree_train.h"
#include "bindings.h"

namespace metarank::bindings {

namespace {

using Indptr = In1<std::int64_t>;
using Ids = In1<std::int32_t>;
using Values = In1<float>;

nb::dict to_dict(InstanceTreeArrays&& trees) {
  nb::dict out;
  out["roots"] = to_numpy(std::move(trees.roots));
  out["child"] = to_numpy(std::move(trees.child));
  out["bias"] = to_numpy(std::move(trees.bias));
  out["weight_start"] = to_numpy(std::move(trees.weight_start));
  out["feature"] = to_numpy(std::move(trees.feature));
  out["weight"] = to_numpy(std::move(trees.weight));
  out["leaf_start"] = to_numpy(std::move(trees.leaf_start));
  out["leaf_label"] = to_numpy(std::move(trees.leaf_label));
  out["leaf_value"] = to_numpy(std::move(trees.leaf_value));
  return out;
}

void bind_training(nb::module_& m) {
  m.def(
      "train_instance_trees",
      [](Indptr x_indptr, Ids x_indices, Values x_data, std::int64_t n_features, Indptr y_indptr, Ids y_indices,
         Values y_data, std::int64_t n_labels, Values row_weight, std::int64_t first_tree, int n_trees,
         std::int64_t max_leaf, std::int64_t labels_per_leaf, std::int64_t max_depth, double log_cost, double rank_cost,
         bool balanced, int rounds, bool ideal_normaliser, double tolerance, int max_steps, int max_passes,
         std::uint64_t seed, int n_threads) {
        InstanceTreeArrays trees;
        {
          nb::gil_scoped_release release;
          trees = train_instance_trees({x_indptr, x_indices, x_data, n_features}, {y_indptr, y_indices, y_data, n_labels},
                                       row_weight,
                                       {log_cost, rank_cost, balanced, rounds, ideal_normaliser,
                                        {tolerance, max_steps, max_passes}},
                                       {first_tree, n_trees, max_leaf, labels_per_leaf, max_depth, seed}, n_threads);
        }
        return to_dict(std::move(trees));
      },
      nb::arg("x_indptr"), nb::arg("x_indices"), nb::arg("x_data"), nb::arg("n_features"), nb::arg("y_indptr"),
      nb::arg("y_indices"), nb::arg("y_data"), nb::arg("n_labels"), nb::arg("row_weight"), nb::arg("first_tree"),
      nb::arg("n_trees"), nb::arg("max_leaf"), nb::arg("labels_per_leaf"), nb::arg("max_depth"), nb::arg("log_cost"),
      nb::arg("rank_cost"), nb::arg("balanced"), nb::arg("rounds"), nb::arg("ideal_normaliser"), nb::arg("tolerance"),
      nb::arg("max_steps"), nb::arg("max_passes"), nb::arg("seed"), nb::arg("n_threads"),
      "Arrays of `InstanceTrees`: trees first_tree .. first_tree + n_trees of a forest, seeded by their number.");
  bind(
      m, "split_instances",
      [](Indptr x_indptr, Ids x_indices, Values x_data, std::int64_t n_features, Indptr y_indptr, Ids y_indices,
         Values y_data, std::int64_t n_labels, Values row_weight, double log_cost, double rank_cost, bool balanced,
         int rounds, bool ideal_normaliser, double tolerance, int max_steps, int max_passes, std::uint64_t seed) {
        return split_instances({x_indptr, x_indices, x_data, n_features}, {y_indptr, y_indices, y_data, n_labels},
                               row_weight,
                               {log_cost, rank_cost, balanced, rounds, ideal_normaliser,
                                {tolerance, max_steps, max_passes}},
                               seed);
      },
      {"x_indptr", "x_indices", "x_data", "n_features", "y_indptr", "y_indices", "y_data", "n_labels", "row_weight",
       "log_cost", "rank_cost", "balanced", "rounds", "ideal_normaliser", "tolerance", "max_steps", "max_passes",
       "seed"},
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
