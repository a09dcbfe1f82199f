// Boosted trees and forests: arrays of a saved model, then rows to predict.
#include "../../metarank/_core/boosted_trees.h"
#include "../../metarank/_core/forest.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const bool forest = in.byte() % 2 == 1;
    const std::int64_t d = in.declared() % 64, n_outputs = in.declared() % 64;
    const auto feature = in.array<std::int32_t>();
    const auto threshold = in.array<double>();
    const auto children = in.matrix<std::int32_t>(2);
    const auto root = in.array<std::int32_t>();
    if (forest) {
      const auto leaf_indptr = in.array<std::int64_t>();
      const auto leaf_label = in.array<std::int32_t>();
      const auto leaf_share = in.array<float>();
      const Forest trees(feature, threshold, children, root, leaf_indptr, leaf_label, leaf_share, d, n_outputs);
      const auto indptr = in.array<std::int64_t>();
      const auto labels = in.array<std::int32_t>();
      trees.score(in.matrix<float>(static_cast<std::size_t>(d)), indptr, labels, 1);
      return;
    }
    const auto missing = in.array<std::uint8_t>();
    const auto leaf_value = in.array<double>();
    const auto output = in.array<std::int32_t>();
    const BoostedTrees trees(feature, threshold, children, missing, root, leaf_value, output, d, n_outputs);
    trees.predict<float>(in.matrix<float>(static_cast<std::size_t>(d)), 1);
    trees.predict<double>(in.matrix<double>(static_cast<std::size_t>(d)), 1);
  });
}
