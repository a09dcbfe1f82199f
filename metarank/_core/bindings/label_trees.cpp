// Label trees: hierarchies, training, packed classifiers, prediction.
#include "../label_trees.h"

#include "../label_partition.h"
#include "../label_tree_train.h"
#include "../label_vectors.h"
#include "bindings.h"

namespace metarank::bindings {

namespace {

using Indptr = In1<std::int64_t>;
using Ids = In1<std::int32_t>;
using Values = In1<float>;

// By the names of WeightBlocks' constructor.
nb::dict to_dict(WeightArrays&& a) {
  nb::dict out;
  out["node_block"] = to_numpy(std::move(a.node_block));
  out["block_slot"] = to_numpy(std::move(a.block_slot));
  out["bucket_start"] = to_numpy(std::move(a.bucket_start));
  out["data_start"] = to_numpy(std::move(a.data_start));
  out["shift"] = to_numpy(std::move(a.shift));
  out["bucket_offset"] = to_numpy(std::move(a.bucket_offset));
  out["data"] = to_numpy(std::move(a.data));
  out["bias"] = to_numpy(std::move(a.bias));
  out["scale"] = to_numpy(std::move(a.scale));
  return out;
}

void bind_training(nb::module_& m) {
  bind(m, "feature_range", &feature_range,
       {"x_indptr", "x_indices", "x_data", "n_features", "y_indptr", "y_indices", "y_data", "S", "n_threads"});
  bind(m, "label_vectors", &label_vectors,
       {"x_indptr", "x_indices", "x_data", "y_indptr", "y_indices", "y_data", "n_labels", "Q", "n_threads"});
  bind(
      m, "partition_labels_dense",
      [](In2<float> V, Ids labels, std::int64_t branching, std::int64_t max_leaf, int max_iterations, double tolerance,
         std::int64_t sample, std::uint64_t seed, int n_threads) {
        return partition_labels_dense(V, labels, {branching, max_leaf, max_iterations, tolerance, sample, seed},
                                      n_threads);
      },
      {"V", "labels", "branching", "max_leaf", "max_iterations", "tolerance", "sample", "seed", "n_threads"});
  bind(
      m, "partition_labels_sparse",
      [](Indptr indptr, Ids indices, Values data, std::int64_t n_features, Ids labels, std::int64_t branching,
         std::int64_t max_leaf, int max_iterations, double tolerance, std::int64_t sample, std::uint64_t seed,
         int n_threads) {
        return partition_labels_sparse({indptr, indices, data, n_features}, labels,
                                       {branching, max_leaf, max_iterations, tolerance, sample, seed}, n_threads);
      },
      {"indptr", "indices", "data", "n_features", "labels", "branching", "max_leaf", "max_iterations", "tolerance",
       "sample", "seed", "n_threads"});
  m.def(
      "train_label_trees",
      [](Indptr x_indptr, Ids x_indices, Values x_data, std::int64_t n_features, Indptr label_indptr, Ids label_rows,
         Values relevance, Values row_cost, Ids roots, Indptr child_start, Ids child, int loss, double C,
         bool mean_cost, double tolerance, int max_epochs, double bias, double threshold, int visitors, int link,
         std::uint64_t seed, std::int64_t first_slot, int n_threads) {
        TrainedTrees trees;
        {
          nb::gil_scoped_release release;
          trees = train_label_trees({x_indptr, x_indices, x_data, n_features}, {label_indptr, label_rows, relevance},
                                    row_cost, {roots, child_start, child},
                                    {static_cast<LinearLoss>(loss), C, mean_cost, tolerance, max_epochs, bias,
                                     threshold, visitors, static_cast<Link>(link), seed, first_slot},
                                    n_threads);
        }
        nb::dict out = to_dict(std::move(trees.weights));
        out["frac"] = to_numpy(std::move(trees.frac));
        return out;
      },
      nb::arg("x_indptr"), nb::arg("x_indices"), nb::arg("x_data"), nb::arg("n_features"), nb::arg("label_indptr"),
      nb::arg("label_rows"), nb::arg("relevance"), nb::arg("row_cost"), nb::arg("roots"), nb::arg("child_start"),
      nb::arg("child"), nb::arg("loss"), nb::arg("C"), nb::arg("mean_cost"), nb::arg("tolerance"),
      nb::arg("max_epochs"), nb::arg("bias"), nb::arg("threshold"), nb::arg("visitors"), nb::arg("link"),
      nb::arg("seed"), nb::arg("first_slot"), nb::arg("n_threads"));
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
  m.def(
      "encode_weights",
      [](Indptr indptr, Ids indices, Values values, Values bias, Indptr node_start) {
        return to_dict(encode_weights(indptr, indices, values, bias, node_start));
      },
      nb::arg("indptr"), nb::arg("indices"), nb::arg("values"), nb::arg("bias"), nb::arg("node_start"),
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
  trees.def_ro_static("largest_cost", &kLargestCost,
                      "Log-probabilities are given as at least minus this, also where a tree has not seen a label.");
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
