// Scores of dense queries and label vectors, of all labels and of pairs.
#include "../../metarank/_core/dense_scores.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::size_t d = in.byte();
    const auto Q = in.matrix<float>(d), F = in.matrix<float>(d);
    const auto bias = in.array<float>();
    vector_scores(Q, F, bias, 1);
    const Lists lists = in.lists();
    vector_scores_of_pairs(Q, F, bias, lists.indptr, lists.labels, 1);
  });
}
