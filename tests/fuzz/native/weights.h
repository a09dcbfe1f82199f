// The classifiers of a tree's slots, read from an input.
#pragma once

#include "../../metarank/_core/weight_blocks.h"
#include "input.h"

inline metarank::WeightBlocks weight_blocks_of(Input& in) {
  const std::int64_t n_features = in.declared();
  const auto node_block = in.array<std::int64_t>(), block_slot = in.array<std::int64_t>();
  const auto bucket_start = in.array<std::int64_t>(), data_start = in.array<std::int64_t>();
  const auto shift = in.array<std::uint8_t>();
  const auto bucket_offset = in.array<std::uint32_t>();
  const auto data = in.array<std::uint8_t>();
  const auto bias = in.array<float>(), scale = in.array<float>();
  return {n_features, node_block, block_slot, bucket_start, data_start, shift, bucket_offset, data, bias, scale};
}
