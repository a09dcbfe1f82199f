// Linear classifiers by feature, of 16-bit and of exact weights: scores of pairs, and shortlists.
#include "../../metarank/_core/weight_index.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const bool exact = in.byte() % 2 == 1;
    const std::int64_t d = in.declared(), k = 1 + in.byte() % 8;
    const auto start = in.array<std::int64_t>();
    const auto label = in.array<std::uint16_t>();
    const auto scale = in.array<float>(), bias = in.array<float>();
    const auto ask = [&](const auto& index) {
      const Csr x = in.csr();
      const Lists lists = in.lists();
      index.scores(x, lists.indptr, lists.labels, 1);
      index.shortlist(x, k, 1);
      const auto sums = index.sums(x, 1);
      const In2<float> view(sums.values.data(), sums.shape);
      index.shortlist_of(view, k);
      index.scores_of(view, lists.indptr, lists.labels);
    };
    if (exact)
      ask(WeightIndex<float>(d, start, label, in.array<float>(), scale, bias));
    else
      ask(WeightIndex<std::int16_t>(d, start, label, in.array<std::int16_t>(), scale, bias));
  });
}
