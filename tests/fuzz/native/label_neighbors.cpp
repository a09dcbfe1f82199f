// Distances to the nearest training rows of each label, sparse and dense.
#include "../../metarank/_core/neighbors.h"
#include "../../metarank/_core/distances.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const bool sparse = in.byte() % 2 == 1;
    const int metric = in.byte() % (kMetrics + 1), order = 1 + in.byte() % 8;
    const NeighborColumns wanted{{metric, kCosine}, {1, order}, {2}};
    const auto label_indptr = in.array<std::int64_t>();
    const auto label_rows = in.array<std::int32_t>();
    const Lists lists = in.lists();
    if (sparse) {
      const std::int64_t d = in.declared();
      const Csr training = in.csr(d);
      const InvertedIndex index(training);
      const Csr x = in.csr();
      label_neighbors_sparse(index, x, {lists.indptr, lists.labels, label_indptr, label_rows},
                             wanted, 1);
      return;
    }
    const std::size_t d = in.byte() % 16u, per_query = in.byte() % 8u;
    const auto X = in.matrix<float>(d);
    const auto sq_norm = in.array<float>();
    const auto Q = in.matrix<float>(d);
    const auto row_indptr = in.array<std::int64_t>();
    const auto row_labels = in.array<std::int32_t>();
    const auto proposed = in.array<std::int32_t>();
    const auto bounds = in.matrix<double>(Q.shape(0));
    require(proposed.shape(0) == 2 * Q.shape(0) * per_query, "proposals of two metrics");
    label_neighbors_dense({X, sq_norm, 1.0, 1.0, row_indptr, row_labels}, Q,
                          {lists.indptr, lists.labels, label_indptr, label_rows}, wanted,
                          {In3<std::int32_t>(proposed.data(), {2, Q.shape(0), per_query}), bounds}, 1);
  });
}
