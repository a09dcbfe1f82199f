// Rankers and corrections: linear scores of described pairs, all alike and label by label.
#include "../../metarank/_core/linear_scores.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::size_t d = in.byte();
    const auto values = in.matrix<float>(d);
    const auto mean = in.array<double>(), weights = in.array<double>();
    linear_scores(values, mean, weights, in.byte(), 1);
    const auto labels = in.array<std::int32_t>();
    const auto by_label = in.matrix<double>(d);
    label_linear_scores(values, labels, mean, by_label, in.array<double>(), 1);
  });
}
