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
    return metarank::bindings::to_dict(
               {"roots", "child", "bias", "weight_start", "feature", "weight", "leaf_start", "leaf_label", "leaf_value"},
               trees.roots, trees.child, trees.bias, trees.weight_start, trees.feature, trees.weight, trees.leaf_start,
               trees.leaf_label, trees.leaf_value)
        .release();
  }
};

}  // namespace nanobind::detail

namespace metarank::bindings {

namespace {

void bind_training(nb::module_& m) {
  bind_options(m, "L1LogisticOptions", Field{"tolerance", &L1Logistic::Options::tolerance},
               Field{"max_steps", &L1Logistic::Options::max_steps}, Field{"max_passes", &L1Logistic::Options::max_passes});
  bind_options(m, "SplitOptions", Field{"log_cost", &SplitOptions::log_cost}, Field{"rank_cost", &SplitOptions::rank_cost},
               Field{"balanced", &SplitOptions::balanced}, Field{"rounds", &SplitOptions::rounds},
               Field{"ideal_normaliser", &SplitOptions::ideal_normaliser}, Field{"logistic", &SplitOptions::logistic});
  bind_options(m, "GrowOptions", Field{"n_trees", &GrowOptions::n_trees},
               Field{"max_leaf", &GrowOptions::max_leaf}, Field{"labels_per_leaf", &GrowOptions::labels_per_leaf},
               Field{"max_depth", &GrowOptions::max_depth}, Field{"seed", &GrowOptions::seed});
  bind(m, "train_instance_trees", &train_instance_trees, {"X", "Y", "row_weight", "split", "grow", "n_threads"},
       "Arrays of `InstanceTrees`.");
}

}  // namespace

void bind_instance_trees(nb::module_& m) {
  bind_training(m);
  nb::class_<InstanceTrees> trees(m, "InstanceTrees",
                                  "A forest of instance trees ready for prediction. X: CSR arrays.");
  bind_borrower<4, 5, 6, 7, 8, 9, 10, 11, 12>(
      trees,
      [](InstanceTrees* self, int64_t n_features, int64_t n_labels, Ids roots, Ids child, Values bias,
         Indptr weight_start, Ids feature, Values weight, Indptr leaf_start, Ids leaf_label, Values leaf_value) {
        new (self) InstanceTrees(n_features, n_labels,
                                 {roots, child, bias, weight_start, feature, weight, leaf_start, leaf_label, leaf_value});
      },
      {"n_features", "n_labels", "roots", "child", "bias", "weight_start", "feature", "weight", "leaf_start",
       "leaf_label", "leaf_value"});
  bind(trees, "top",
       [](const InstanceTrees& self, const CsrView& X, int64_t k, int n_threads) {
         return self.top(X, k, nullptr, n_threads);
       },
       {"X", "k", "n_threads"}, "(indptr, labels, mean values) of each row's k best labels.");
  bind(trees, "top_reranked",
       [](const InstanceTrees& self, const CsrView& X, int64_t k, const LabelMeanIndex& means, double gamma,
          bool unit_means, double alpha, int n_threads) {
         const Reranking reranking{means, {gamma, unit_means}, alpha};
         return self.top(X, k, &reranking, n_threads);
       },
       {"X", "k", "means", "gamma", "unit_means", "alpha", "n_threads"},
       "As top, re-ranked by tail classifiers (eq. 8).");
  bind(trees, "pairs", &InstanceTrees::pairs, {"X", "indptr", "labels", "n_threads"},
       "Mean values of the pairs (row, label).");
}

}  // namespace metarank::bindings
