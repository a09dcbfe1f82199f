// Ensembles of binary trees: boosted trees and forests.
#include "../boosted_trees.h"
#include "../forest.h"
#include "bindings.h"

namespace metarank::bindings {

void bind_boosting(nb::module_& m) {
  nb::class_<BoostedTrees> boosted(m, "BoostedTrees");
  bind_init(
      boosted,
      [](BoostedTrees* self, In1<int32_t> feature, In1<double> threshold, In2<int32_t> children, In1<uint8_t> missing,
         In1<int32_t> root, In1<double> leaf_value, In1<int32_t> output, int64_t n_features, int64_t n_outputs) {
        new (self) BoostedTrees(feature, threshold, children, missing, root, leaf_value, output, n_features, n_outputs);
      },
      {"feature", "threshold", "children", "missing", "root", "leaf_value", "output", "n_features", "n_outputs"});
  bind(boosted, "predict", &BoostedTrees::predict<float>, {"X", "n_threads"});
  bind(boosted, "predict", &BoostedTrees::predict<double>, {"X", "n_threads"});

  const auto shares = [&]<typename T>() {
    bind(m, "tree_shares",
         [](In1<int32_t> feature, In1<double> threshold, In2<int32_t> children, In1<uint8_t> missing, In1<int32_t> root,
            In1<double> leaf_value, In1<int32_t> node_count, In1<int32_t> leaf_count, In2<T> X, int n_threads) {
           return tree_shares<T>({feature, threshold, children, missing, root, leaf_value, node_count, leaf_count}, X,
                                 n_threads);
         },
         {"feature", "threshold", "children", "missing", "root", "leaf_value", "node_count", "leaf_count", "X",
          "n_threads"});
  };
  shares.operator()<float>();
  shares.operator()<double>();

  nb::class_<Forest> forest(m, "Forest");
  bind_init(forest,
            [](Forest* self, In1<int32_t> feature, In1<double> threshold, In2<int32_t> children, In1<int32_t> root,
               In1<int64_t> leaf_indptr, In1<int32_t> leaf_label, In1<float> leaf_share, int64_t n_features,
               int64_t n_labels) {
              new (self)
                  Forest(feature, threshold, children, root, leaf_indptr, leaf_label, leaf_share, n_features, n_labels);
            },
            {"feature", "threshold", "children", "root", "leaf_indptr", "leaf_label", "leaf_share", "n_features",
             "n_labels"});
  bind(forest, "score", &Forest::score, {"X", "indptr", "labels", "n_threads"});
}

}  // namespace metarank::bindings
