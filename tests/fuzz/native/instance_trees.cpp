// Instance trees: a forest of a saved model, asked for the best labels, re-ranked by means, and for pairs.
#include "../../metarank/_core/instance_trees.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::int64_t d = in.declared(), n_labels = in.declared();
    const std::int64_t k = 1 + in.byte() % 8;
    const double alpha = in.byte() / 255.0;
    const auto roots = in.array<std::int32_t>();
    const auto child = in.array<std::int32_t>();
    const auto bias = in.array<float>();
    const auto weight_start = in.array<std::int64_t>();
    const auto feature = in.array<std::int32_t>();
    const auto weight = in.array<float>();
    const auto leaf_start = in.array<std::int64_t>();
    const auto leaf_label = in.array<std::int32_t>();
    const auto leaf_value = in.array<float>();
    const InstanceTrees trees(
        d, n_labels, {roots, child, bias, weight_start, feature, weight, leaf_start, leaf_label, leaf_value});
    const Csr x = in.csr();
    trees.top(x, k, nullptr, 1);
    const Lists lists = in.lists();
    trees.pairs(x, lists.indptr, lists.labels, 1);
    const Csr mean = in.csr(d);
    const auto sq_norm = in.array<double>();
    const auto known = in.array<std::uint8_t>();
    const LabelMeanIndex means(mean, sq_norm, known, 1.0);
    require(means.n_labels() == n_labels, "means must be of the forest's labels");
    for (const bool unit_means : {false, true}) {
      const Reranking reranking{means, {30.0, unit_means}, alpha};
      trees.top(x, k, &reranking, 1);
    }
  });
}
