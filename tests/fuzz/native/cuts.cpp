// Calibrators: scores by label, the context of a list, and sizes of greatest expected F1.
#include "../../metarank/_core/candidate_lists.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::size_t p = in.byte() % 16u, q = in.byte() % 16u;
    const std::int64_t longest = 1 + in.byte() % 32;
    const auto indptr = in.array<std::int64_t>();
    const auto scores = in.array<double>(), probabilities = in.array<double>();
    list_ranks(scores, indptr);
    list_context(scores, indptr);
    falling_logits(scores, in.array<float>(), indptr);
    expected_f1_sizes(probabilities, indptr, in.byte() / 8.0, longest, true);
    const auto X = in.matrix<double>(p);
    const auto index = in.array<std::int32_t>();
    const auto shared = in.array<double>();
    label_logistic_scores(X, index, shared, in.matrix<double>(q));
  });
}
