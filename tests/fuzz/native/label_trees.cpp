// Label trees: hierarchy and classifiers of a saved model, asked by row, by pair and by label.
#include "../../metarank/_core/label_trees.h"
#include "input.h"
#include "weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::int64_t n_labels = in.declared();
    const auto link = static_cast<Link>(in.byte() % 7);
    const float path_weight = static_cast<float>(in.byte()) / 200;
    const std::int64_t width = 1 + in.byte() % 8, k = 1 + in.byte() % 8;
    const auto roots = in.array<std::int32_t>();
    const auto child_start = in.array<std::int64_t>();
    const auto child = in.array<std::int32_t>();
    const auto label_cost = in.array<float>();
    const WeightBlocks weights = weight_blocks_of(in);
    const LabelTrees trees(roots, child_start, child, n_labels, weights, link, path_weight, label_cost);
    const Csr x = in.csr();
    trees.beam(x, width, k, 2 * k, 1);
    const Lists lists = in.lists();
    trees.score_pairs(x, width, lists.indptr, lists.labels, true, 1);
    trees.points(x, in.array<double>(), 1.5, k, 1);
  });
}
