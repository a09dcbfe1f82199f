// Label trees: hierarchies, training, packed classifiers, prediction.
#include "../label_trees.h"

#include "../label_partition.h"
#include "../label_tree_train.h"
#include "../label_vectors.h"
#include "bindings.h"

namespace nanobind::detail {

// By the names of WeightBlocks' constructor.
template <>
struct type_caster<metarank::WeightArrays> {
  static constexpr auto Name = const_name("dict");

  static handle from_cpp(metarank::WeightArrays&& weights, rv_policy, cleanup_list*) {
    using metarank::bindings::to_numpy;
    dict out;
    out["node_block"] = to_numpy(std::move(weights.node_block));
    out["block_slot"] = to_numpy(std::move(weights.block_slot));
    out["bucket_start"] = to_numpy(std::move(weights.bucket_start));
    out["data_start"] = to_numpy(std::move(weights.data_start));
    out["shift"] = to_numpy(std::move(weights.shift));
    out["bucket_offset"] = to_numpy(std::move(weights.bucket_offset));
    out["data"] = to_numpy(std::move(weights.data));
    out["bias"] = to_numpy(std::move(weights.bias));
    out["scale"] = to_numpy(std::move(weights.scale));
    return out.release();
  }
};

// Those, and `frac`.
template <>
struct type_caster<metarank::TrainedTrees> {
  static constexpr auto Name = const_name("dict");

  static handle from_cpp(metarank::TrainedTrees&& trees, rv_policy policy, cleanup_list* cleanup) {
    auto out = steal<dict>(make_caster<metarank::WeightArrays>::from_cpp(std::move(trees.weights), policy, cleanup));
    out["frac"] = metarank::bindings::to_numpy(std::move(trees.frac));
    return out.release();
  }
};

// (indptr, rows, relevance)
template <>
struct type_caster<metarank::LabelRows>
    : struct_caster<metarank::LabelRows, metarank::In1<std::int64_t>, metarank::In1<std::int32_t>,
                    metarank::In1<float>> {};

// (roots, child_start, child)
template <>
struct type_caster<metarank::HierarchyView>
    : struct_caster<metarank::HierarchyView, metarank::In1<std::int32_t>, metarank::In1<std::int64_t>,
                    metarank::In1<std::int32_t>> {};

// Kinds of loss and link go by their numbers.
template <typename Kind>
struct number_caster {
  using Value = Kind;
  template <typename>
  using Cast = Value;
  static constexpr auto Name = const_name("int");
  template <typename>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle source, std::uint32_t flags, cleanup_list* cleanup) noexcept {
    return number_.from_python(source, flags, cleanup);
  }
  explicit operator Value() { return static_cast<Kind>(number_.value); }

 private:
  make_caster<int> number_;
};
template <>
struct type_caster<metarank::LinearLoss> : number_caster<metarank::LinearLoss> {};
template <>
struct type_caster<metarank::Link> : number_caster<metarank::Link> {};

}  // namespace nanobind::detail

namespace metarank::bindings {

namespace {

using Indptr = In1<std::int64_t>;
using Ids = In1<std::int32_t>;
using Values = In1<float>;

void bind_training(nb::module_& m) {
  bind(m, "feature_range", &feature_range,
       {"x_indptr", "x_indices", "x_data", "n_features", "y_indptr", "y_indices", "y_data", "S", "n_threads"});
  bind(m, "label_vectors", &label_vectors,
       {"x_indptr", "x_indices", "x_data", "y_indptr", "y_indices", "y_data", "n_labels", "Q", "n_threads"});
  bind_options(m, "Clustering", Field{"branching", &Clustering::branching}, Field{"max_leaf", &Clustering::max_leaf},
               Field{"max_iterations", &Clustering::max_iterations}, Field{"tolerance", &Clustering::tolerance},
               Field{"sample", &Clustering::sample}, Field{"seed", &Clustering::seed}, Field{"balanced", &Clustering::balanced});
  bind(m, "partition_labels_dense", &partition_labels_dense, {"V", "labels", "how", "n_threads"});
  bind(m, "partition_labels_sparse", &partition_labels_sparse, {"V", "labels", "how", "n_threads"});
  using Options = LabelTreeOptions;
  bind_options(m, "LabelTreeOptions", Field{"loss", &Options::loss}, Field{"C", &Options::C},
               Field{"mean_cost", &Options::mean_cost}, Field{"tolerance", &Options::tolerance},
               Field{"max_epochs", &Options::max_epochs}, Field{"bias", &Options::bias},
               Field{"threshold", &Options::threshold}, Field{"visitors", &Options::visitors},
               Field{"link", &Options::link}, Field{"seed", &Options::seed}, Field{"first_slot", &Options::first_slot});
  bind(m, "train_label_trees", &train_label_trees,
       {"X", "labels", "row_cost", "hierarchy", "options", "n_threads"});
}

void bind_weights(nb::module_& m) {
  nb::class_<WeightBlocks> blocks(
      m, "WeightBlocks", "Sparse linear classifiers of a model's slots, by blocks of a node; see encode_weights.");
  bind_borrower<3, 4, 5, 6, 7, 8, 9, 10, 11>(
      blocks,
      [](WeightBlocks* self, std::int64_t n_features, Indptr node_block, Indptr block_slot, Indptr bucket_start,
         Indptr data_start, In1<std::uint8_t> shift, In1<std::uint32_t> bucket_offset, In1<std::uint8_t> data,
         Values bias, Values scale) {
        new (self) WeightBlocks(n_features, node_block, block_slot, bucket_start, data_start, shift, bucket_offset,
                                data, bias, scale);
      },
      {"n_features", "node_block", "block_slot", "bucket_start", "data_start", "shift", "bucket_offset", "data", "bias",
       "scale"});
  blocks.def_prop_ro("n_features", &WeightBlocks::n_features)
      .def_prop_ro("n_slots", &WeightBlocks::n_slots)
      .def("decode", &decode_weights, Unlocked(), "CSR arrays (indptr, indices, values) of the rounded weights, a row a slot.");
  bind(blocks, "find", &find_weights, {"block", "feature"}, "Slots (within the block) and 16-bit weights of a feature.");
  bind(m, "encode_weights", &encode_weights, {"indptr", "indices", "values", "bias", "node_start"},
       "Arrays of WeightBlocks from a canonical CSR matrix (a row a slot), the biases and each node's first slot.");
}

}  // namespace

void bind_label_trees(nb::module_& m) {
  bind_training(m);
  bind_weights(m);
  nb::class_<LabelTrees> trees(m, "LabelTrees",
                               "Label trees ready for prediction. Every method takes X as CSR arrays or dense.");
  bind_borrower<2, 3, 4, 6>(
      trees,
      [](LabelTrees* self, Ids roots, Indptr child_start, Ids child, std::int64_t n_labels,
         const WeightBlocks& weights, int link, float path_weight, Values label_cost) {
        new (self) LabelTrees(roots, child_start, child, n_labels, weights, static_cast<Link>(link), path_weight,
                              label_cost);
      },
      {"roots", "child_start", "child", "n_labels", "weights", "link", "path_weight", "label_cost"});
  bind(
      trees, "beam",
      [](const LabelTrees& t, Indptr indptr, Ids indices, Values data, std::int64_t width, std::int64_t k,
         std::int64_t tree_k, bool per_tree, int n_threads) {
        return beam(t, require_rows(indptr, indices, data, t.n_features()), {width, k, tree_k, per_tree}, n_threads);
      },
      {"x_indptr", "x_indices", "x_data", "beam", "k", "tree_k", "per_tree", "n_threads"},
      "(indptr, labels, mean probabilities, per-tree log-probabilities or None) of each row's k best labels.");
  bind(
      trees, "beam",
      [](const LabelTrees& t, In2<float> X, std::int64_t width, std::int64_t k, std::int64_t tree_k, bool per_tree,
         int n_threads) { return beam(t, require_rows(X, t.n_features()), {width, k, tree_k, per_tree}, n_threads); },
      {"X", "beam", "k", "tree_k", "per_tree", "n_threads"});
  bind(
      trees, "score_pairs",
      [](const LabelTrees& t, Indptr x_indptr, Ids x_indices, Values x_data, Indptr indptr, Ids labels, bool per_tree,
         int n_threads) {
        return score_pairs(t, require_rows(x_indptr, x_indices, x_data, t.n_features()), indptr, labels, per_tree,
                           n_threads);
      },
      {"x_indptr", "x_indices", "x_data", "indptr", "labels", "per_tree", "n_threads"},
      "(mean probabilities, per-tree log-probabilities or None) of the pairs (row, label).");
  bind(
      trees, "score_pairs",
      [](const LabelTrees& t, In2<float> X, Indptr indptr, Ids labels, bool per_tree, int n_threads) {
        return score_pairs(t, require_rows(X, t.n_features()), indptr, labels, per_tree, n_threads);
      },
      {"X", "indptr", "labels", "per_tree", "n_threads"});
  bind(
      trees, "points",
      [](const LabelTrees& t, Indptr x_indptr, Ids x_indices, Values x_data, In1<double> frac, double factor,
         std::int64_t k, int n_threads) {
        return points(t, require_rows(x_indptr, x_indices, x_data, t.n_features()), frac, factor, k, n_threads);
      },
      {"x_indptr", "x_indices", "x_data", "frac", "factor", "k", "n_threads"},
      "(indptr, rows, mean probabilities) of each label's k best rows.");
  bind(
      trees, "points",
      [](const LabelTrees& t, In2<float> X, In1<double> frac, double factor, std::int64_t k, int n_threads) {
        return points(t, require_rows(X, t.n_features()), frac, factor, k, n_threads);
      },
      {"X", "frac", "factor", "k", "n_threads"});
}

}  // namespace metarank::bindings
