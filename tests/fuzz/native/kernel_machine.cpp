// Kernel machines: support rows and dual weights of a saved model.
#include "../../metarank/_core/dense_scores.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::size_t d = in.byte(), n_support = in.byte();
    const std::string metric = in.byte() % 2 == 0 ? "l1" : "squared_l2";
    const float gamma = static_cast<float>(in.byte() + 1) / 16;  // Python's callers keep it positive and finite
    const auto X = in.matrix<float>(d), support = in.matrix<float>(d);
    const auto dual = in.matrix<float>(n_support);
    const auto bias = in.array<float>();
    const Lists lists = in.lists();
    kernel_machine(X, support, dual, bias, metric, gamma, lists.indptr, lists.labels, 1);
  });
}
