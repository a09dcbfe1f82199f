// Weight blocks between C++ and NumPy.
#pragma once

#include "bindings.h"
#include "weight_blocks.h"

namespace metarank {

// The arrays by name, as a scorer keeps and saves them; no copy.
nb::dict to_dict(WeightArrays&& arrays);

// A model over NumPy's arrays, validated once and kept alive: `_core.WeightBlocks(n_features=d, **arrays)`.
class WeightBlocks {
 public:
  WeightBlocks(std::int64_t n_features, In1<std::int64_t> node_block, In1<std::int64_t> block_slot,
               In1<std::int64_t> bucket_start, In1<std::int64_t> data_start, In1<std::uint8_t> shift,
               In1<std::uint32_t> bucket_offset, In1<std::uint8_t> data, In1<float> bias, In1<float> scale);

  std::int64_t n_features() const { return n_features_; }
  const WeightBlocksView& view() const { return view_; }

 private:
  std::int64_t n_features_;
  In1<std::int64_t> node_block_, block_slot_, bucket_start_, data_start_;
  In1<std::uint8_t> shift_;
  In1<std::uint32_t> bucket_offset_;
  In1<std::uint8_t> data_;
  In1<float> bias_, scale_;
  WeightBlocksView view_;
};

}  // namespace metarank
