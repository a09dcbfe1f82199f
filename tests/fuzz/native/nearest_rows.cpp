// The nearest training rows: sparse, by the inverted index; dense, with rows proposed by another index.
#include "../../metarank/_core/neighbors.h"
#include "../../metarank/_core/distances.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const bool sparse = in.byte() % 2 == 1;
    const int k = 1 + in.byte() % 8, metric = in.byte() % (kMetrics + 1);
    const auto rows = in.array<std::int32_t>();
    if (sparse) {
      const std::int64_t d = in.declared();
      const Csr training = in.csr(d);
      const InvertedIndex index(training);
      const Csr x = in.csr();
      for (const int by : {metric, 0, metric})
        nearest_rows_sparse(index, x, {rows, index.n_rows()}, k, by, 1);
      return;
    }
    const std::size_t d = in.byte() % 16u;
    const auto X = in.matrix<float>(d);
    const auto sq_norm = in.array<float>();
    const auto Q = in.matrix<float>(d);
    const auto proposals = in.matrix<std::int32_t>(in.byte() % 8u);
    nearest_rows_dense(X, sq_norm, Q, rows, k, metric, proposals, in.array<double>(), 1);
    nearest_proposed_dense(X, Q, proposals, k, 1);
  });
}
