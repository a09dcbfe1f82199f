// Classifiers of a tree's slots in their packed form: read row by row, and looked up by feature.
#include "../../metarank/_core/weight_blocks.h"
#include "input.h"
#include "weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::vector<std::int32_t> features = {in.word(), in.word(), in.byte(), 0, INT32_MAX};
    const WeightBlocks weights = weight_blocks_of(in);
    int sum = 0;
    const auto add = [&](std::int32_t, const WeightRow& row) {
      for (std::int32_t e = 0; e < row.count; ++e) sum += row.weight(e) ^ static_cast<int>(row.slot(e));
    };
    for (std::int64_t b = 0; b < weights.view().n_blocks; ++b) {
      const WeightBlock block = weights.view().block(b);
      block.for_each_row(add);
      for (const std::int32_t feature : features) add(feature, block.find(feature));
    }
    volatile int read = sum;
    (void)read;
  });
}
