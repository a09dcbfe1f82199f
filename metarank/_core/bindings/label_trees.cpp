// Label trees: hierarchies, training, packed classifiers, prediction.
#include "../label_trees.h"

#include "../label_partition.h"
#include "../label_tree_train.h"
#include "bindings.h"

namespace nanobind::detail {

// By the names of WeightBlocks' constructor.
template <>
struct type_caster<metarank::WeightArrays> {
  static constexpr auto Name = const_name("dict");

  static handle from_cpp(metarank::WeightArrays&& weights, rv_policy, cleanup_list*) {
    return metarank::bindings::to_dict({"node_block", "block_slot", "bucket_start", "data_start", "shift",
                                        "bucket_offset", "data", "bias", "scale"},
                                       weights.node_block, weights.block_slot, weights.bucket_start, weights.data_start,
                                       weights.shift, weights.bucket_offset, weights.data, weights.bias, weights.scale)
        .release();
  }
};

// Those, and `frac`.
template <>
struct type_caster<metarank::TrainedTrees> {
  static constexpr auto Name = const_name("dict");

  static handle from_cpp(metarank::TrainedTrees&& trees, rv_policy policy, cleanup_list* cleanup) {
    auto out = steal<dict>(make_caster<metarank::WeightArrays>::from_cpp(std::move(trees.weights), policy, cleanup));
    out["frac"] = cast(metarank::to_array(std::move(trees.frac)));
    return out.release();
  }
};

// (indptr, rows, relevance)
template <>
struct type_caster<metarank::LabelRows>
    : struct_caster<metarank::LabelRows, metarank::Indptr, metarank::Ids, metarank::Values> {};

// (roots, child_start, child)
template <>
struct type_caster<metarank::HierarchyView>
    : struct_caster<metarank::HierarchyView, metarank::Ids, metarank::Indptr, metarank::Ids> {};

// Kinds of loss and link go by their numbers.
template <typename Kind>
struct number_caster : made_caster<Kind, int> {
  explicit operator Kind() { return static_cast<Kind>(this->from_.value); }
};
template <>
struct type_caster<metarank::LinearLoss> : number_caster<metarank::LinearLoss> {};
template <>
struct type_caster<metarank::Link> : number_caster<metarank::Link> {};

}  // namespace nanobind::detail

namespace metarank::bindings {

namespace {

void bind_training(nb::module_& m) {
  bind(m, "transposed_product", &transposed_product, {"A", "C", "D", "n_threads"});
  bind_options(m, "Clustering", Field{"branching", &Clustering::branching}, Field{"max_leaf", &Clustering::max_leaf},
               Field{"max_iterations", &Clustering::max_iterations}, Field{"tolerance", &Clustering::tolerance},
               Field{"sample", &Clustering::sample}, Field{"seed", &Clustering::seed},
               Field{"balanced", &Clustering::balanced});
  bind(m, "partition_labels_dense", &partition_labels_dense, {"V", "labels", "how", "n_threads"});
  bind(m, "partition_labels_sparse", &partition_labels_sparse, {"V", "labels", "how", "n_threads"});
  using Options = LabelTreeOptions;
  bind_options(m, "LabelTreeOptions", Field{"loss", &Options::loss}, Field{"C", &Options::C},
               Field{"mean_cost", &Options::mean_cost}, Field{"tolerance", &Options::tolerance},
               Field{"max_epochs", &Options::max_epochs}, Field{"bias", &Options::bias},
               Field{"threshold", &Options::threshold}, Field{"visitors", &Options::visitors},
               Field{"link", &Options::link}, Field{"seed", &Options::seed});
  bind(m, "train_label_trees", &train_label_trees, {"X", "labels", "row_cost", "hierarchy", "options", "n_threads"});
}

void bind_weights(nb::module_& m) {
  nb::class_<WeightBlocks> blocks(m, "WeightBlocks",
                                  "Sparse linear classifiers of a model's slots, by blocks of a node.");
  bind_borrower<3, 4, 5, 6, 7, 8, 9, 10, 11>(
      blocks,
      [](WeightBlocks* self, int64_t n_features, Indptr node_block, Indptr block_slot, Indptr bucket_start,
         Indptr data_start, In1<uint8_t> shift, In1<uint32_t> bucket_offset, In1<uint8_t> data, Values bias,
         Values scale) {
        new (self) WeightBlocks(n_features, node_block, block_slot, bucket_start, data_start, shift, bucket_offset,
                                data, bias, scale);
      },
      {"n_features", "node_block", "block_slot", "bucket_start", "data_start", "shift", "bucket_offset", "data", "bias",
       "scale"});
}

}  // namespace

void bind_label_trees(nb::module_& m) {
  bind_training(m);
  bind_weights(m);
  nb::class_<LabelTrees> trees(m, "LabelTrees",
                               "Label trees ready for prediction. X: CSR arrays.");
  bind_borrower<2, 3, 4, 6>(
      trees,
      [](LabelTrees* self, Ids roots, Indptr child_start, Ids child, int64_t n_labels, const WeightBlocks& weights,
         Link link, float path_weight, Values label_cost) {
        new (self) LabelTrees(roots, child_start, child, n_labels, weights, link, path_weight, label_cost);
      },
      {"roots", "child_start", "child", "n_labels", "weights", "link", "path_weight", "label_cost"});
  bind(trees, "beam",
       [](const LabelTrees& self, const CsrView& X, int64_t beam, int64_t k, int64_t tree_k, int n_threads) {
         return self.beam(X, beam, k, tree_k, n_threads);
       },
       {"X", "beam", "k", "tree_k", "n_threads"}, "(indptr, labels, mean probabilities) of each row's k best labels.");
  bind(trees, "score_pairs",
       [](const LabelTrees& self, const CsrView& X, int64_t beam, Indptr indptr, Ids labels, bool per_tree,
          int n_threads) { return self.score_pairs(X, beam, indptr, labels, per_tree, n_threads); },
       {"X", "beam", "indptr", "labels", "per_tree", "n_threads"},
       "(mean probabilities, per-tree log-probabilities or None) of the pairs (row, label), by the same search.");
  bind(trees, "points", &LabelTrees::points, {"X", "frac", "factor", "k", "n_threads"},
       "(indptr, rows, mean probabilities) of each label's k best rows.");
}

}  // namespace metarank::bindings
