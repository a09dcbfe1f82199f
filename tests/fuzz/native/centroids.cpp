// Dense means of the labels: distances of pairs.
#include "../../metarank/_core/dense_scores.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::size_t d = in.byte();
    const auto means = in.matrix<float>(d);
    const auto known = in.array<std::uint8_t>();
    const auto X = in.matrix<float>(d);
    const Lists lists = in.lists();
    centroid_distances_dense(means, known, in.byte(), X, lists.indptr, lists.labels, 1);
  });
}
