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
    const QueryRows X = require_rows(x.indptr, x.indices, x.data, d);
    trees.top(X, k, nullptr, 1);
    const Lists lists = in.lists();
    trees.pairs(X, lists.indptr, lists.labels, true, 1);
    const Csr mean = in.csr();
    const auto sq_norm = in.array<double>();
    const auto known = in.array<std::uint8_t>();
    const LabelMeanIndex means(d, mean.indptr, mean.indices, mean.data, sq_norm, known, 1.0);
    require(means.n_labels() == n_labels, "means must be of the forest's labels");
    for (const bool unit_means : {false, true}) {
      const Reranking reranking{means, {30.0, unit_means}, alpha, 1 + k / 2};
      trees.top(X, k, &reranking, 1);
    }
  });
}
