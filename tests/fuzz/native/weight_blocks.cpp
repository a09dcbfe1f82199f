// Classifiers of a tree's slots in their packed form: unpacked, and looked up by feature.
#include "../../metarank/_core/weight_blocks.h"
#include "input.h"
#include "weights.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::vector<std::int32_t> features = {in.word(), in.word(), in.byte(), 0, INT32_MAX};
    const WeightBlocks weights = weight_blocks_of(in);
    decode_weights(weights);
    for (std::int64_t block = 0; block < weights.view().n_blocks; ++block)
      for (const std::int32_t feature : features) find_weights(weights, block, feature);
  });
}
