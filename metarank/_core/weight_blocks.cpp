#include "weight_blocks.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace metarank {

namespace {

constexpr float kLargestInt8 = 127.0f;
constexpr int kLargestShift = 16;
constexpr int64_t kRowsPerBucket = 5;

// A number in one byte or two.
void append(std::vector<uint8_t>& bytes, int low_bytes, size_t number) {
  bytes.push_back(static_cast<uint8_t>(number));
  if (low_bytes == 2) bytes.push_back(static_cast<uint8_t>(number >> 8));
}

// The scale of each slot; 0 where the largest weight is too small to divide by.
std::vector<float> scales(const RawBlock& block) {
  std::vector<float> scale(block.bias.size(), 0.0f);
  for (size_t e = 0; e < block.weight.size(); ++e)
    scale[block.slot[e]] = std::max(scale[block.slot[e]], std::fabs(block.weight[e]));
  for (float& s : scale) s = s / kLargestInt8 >= FLT_MIN ? s / kLargestInt8 : 0.0f;
  return scale;
}

int8_t quantise(float w, float scale) {
  return scale == 0.0f ? 0 : static_cast<int8_t>(std::clamp(std::nearbyint(w / scale), -kLargestInt8, kLargestInt8));
}

int choose_shift(int64_t largest_feature, int64_t n_rows) {
  int shift = 0;
  while (shift < kLargestShift && ((largest_feature >> shift) + 1) * kRowsPerBucket > n_rows) ++shift;
  return shift;
}

}  // namespace

EncodedBlock encode(const RawBlock& block) {
  for (const auto* values : {&block.bias, &block.weight})
    for (const float v : *values) require(std::isfinite(v), "weights must be finite");
  EncodedBlock out;
  out.bias = block.bias;
  out.scale = scales(block);

  // What is left after rounding.
  struct Row {
    int32_t feature;
    uint32_t first, count;
  };
  std::vector<Row> rows;
  std::vector<uint8_t> entries;
  entries.reserve(block.slot.size() * kEntryBytes);
  for (size_t r = 0; r < block.feature.size(); ++r) {
    Row row{block.feature[r], static_cast<uint32_t>(entries.size() / kEntryBytes), 0};
    for (uint32_t e = block.row_start[r]; e < block.row_start[r + 1]; ++e) {
      const int8_t w = quantise(block.weight[e], out.scale[block.slot[e]]);
      if (w == 0) continue;
      entries.push_back(block.slot[e]);
      entries.push_back(static_cast<uint8_t>(w));
      ++row.count;
    }
    if (row.count > 0) rows.push_back(row);
  }

  const int64_t largest = rows.empty() ? -1 : rows.back().feature;
  const int shift = rows.empty() ? 0 : choose_shift(largest, static_cast<int64_t>(rows.size()));
  const int64_t n_buckets = rows.empty() ? 0 : (largest >> shift) + 1;
  const int low_bytes = shift <= 8 ? 1 : 2;
  out.shift = static_cast<uint8_t>(shift);
  out.bucket_offset.reserve(static_cast<size_t>(n_buckets) + 1);
  out.data.reserve(entries.size() + 5 * rows.size() + 2);
  size_t begin = 0;
  for (int64_t bucket = 0; bucket < n_buckets; ++bucket) {
    out.bucket_offset.push_back(static_cast<uint32_t>(out.data.size()));
    size_t end = begin;
    while (end < rows.size() && (rows[end].feature >> shift) == bucket) ++end;
    if (begin == end) continue;
    append(out.data, low_bytes, end - begin - 1);
    for (size_t r = begin; r < end; ++r)
      append(out.data, low_bytes, static_cast<size_t>(rows[r].feature & ((1 << shift) - 1)));
    for (size_t r = begin; r < end; ++r) out.data.push_back(static_cast<uint8_t>(rows[r].count - 1));
    const size_t last = rows[end - 1].first + rows[end - 1].count;
    out.data.insert(out.data.end(), entries.data() + kEntryBytes * rows[begin].first,
                    entries.data() + kEntryBytes * last);
    begin = end;
  }
  require(out.data.size() <= std::numeric_limits<uint32_t>::max(), "a block must take less than 4 GiB");
  out.bucket_offset.push_back(static_cast<uint32_t>(out.data.size()));
  out.data.shrink_to_fit();  // blocks of inner nodes wait for those of the leaves
  return out;
}

void WeightCollector::append(EncodedBlock&& block) {
  data_.append(block.data);
  bucket_offset_.append(block.bucket_offset);
  all_.shift.push_back(block.shift);
  all_.bias.insert(all_.bias.end(), block.bias.begin(), block.bias.end());
  all_.scale.insert(all_.scale.end(), block.scale.begin(), block.scale.end());
  all_.bucket_start.push_back(static_cast<int64_t>(bucket_offset_.size()));
  all_.data_start.push_back(static_cast<int64_t>(data_.size()));
  all_.block_slot.push_back(static_cast<int64_t>(all_.bias.size()));
  block = {};
}

WeightArrays WeightCollector::collected(std::vector<int64_t>&& node_block) && {
  all_.node_block = std::move(node_block);
  all_.data = std::move(data_).joined(kBlockPadding);
  all_.bucket_offset = std::move(bucket_offset_).joined(0);
  return std::move(all_);
}

namespace {

void require_block(const WeightBlock& block, int64_t n_bytes, int64_t n_features) {
  using weight_blocks::load;
  const auto shift = static_cast<int64_t>(block.shift);
  require(block.shift <= kLargestShift, "shift must be at most 16");
  const int32_t low_bytes = block.shift <= 8 ? 1 : 2;
  require(block.bucket_offset[0] == 0 && block.bucket_offset[block.n_buckets] == n_bytes,
          "bucket_offset must start at 0 and end at the block's number of bytes");
  require(block.n_buckets == 0 || (block.n_buckets - 1) << shift < n_features,
          "features of the weights must lie below n_features");
  // Neighbours first: then no bucket leaves the block.
  for (int64_t b = 0; b < block.n_buckets; ++b)
    require(block.bucket_offset[b] <= block.bucket_offset[b + 1], "bucket_offset must not decrease");
  for (int64_t b = 0; b < block.n_buckets; ++b) {
    const uint8_t* p = block.data + block.bucket_offset[b];
    const uint8_t* end = block.data + block.bucket_offset[b + 1];
    if (p == end) continue;
    require(end - p >= low_bytes, "a bucket must hold at least one row");
    const int64_t n = static_cast<int64_t>(load(p, low_bytes)) + 1;
    p += low_bytes;
    require(end - p >= n * (low_bytes + 1), "a bucket must hold all its rows");
    const uint8_t* lows = p;
    const uint8_t* counts = p + n * low_bytes;
    p = counts + n;
    int64_t previous = -1;
    for (int64_t i = 0; i < n; ++i) {
      const int64_t low = load(lows + low_bytes * i, low_bytes);
      require(low > previous && low < (int64_t{1} << shift), "features must ascend within their bucket");
      require((b << shift) + low < n_features, "features of the weights must lie below n_features");
      previous = low;
      const WeightRow row{p, counts[i] + 1};
      require(end - p >= kEntryBytes * row.count, "a bucket must hold all its entries");
      int last = -1;
      for (int32_t e = 0; e < row.count; ++e) {
        const auto slot = static_cast<int>(row.slot(e));
        require(slot > last && slot < block.n_slots, "slots must ascend within a feature");
        last = slot;
      }
      p += kEntryBytes * row.count;
    }
    require(p == end, "a bucket must end with its last entry");
  }
}

void require_cuts(const int64_t* start, int64_t n, int64_t total, const char* name) {
  bool ok = start[0] == 0 && start[n] == total;
  for (int64_t i = 0; i < n; ++i) ok = ok && start[i] <= start[i + 1];
  if (!ok) throw std::invalid_argument(std::string(name) + " must ascend from 0 to the size of what it cuts");
}

}  // namespace

void WeightBlocksView::validate(int64_t n_features) const {
  require(n_features >= 0 && n_features <= std::numeric_limits<int32_t>::max(), "n_features must lie in [0, 2^31)");
  require(n_bytes >= kBlockPadding, "data must end with 64 bytes of padding");
  require_cuts(node_block, n_nodes, n_blocks, "node_block");
  require_cuts(block_slot, n_blocks, n_slots, "block_slot");
  require_cuts(bucket_start, n_blocks, n_bucket_offsets, "bucket_start");
  require_cuts(data_start, n_blocks, n_bytes - kBlockPadding, "data_start");
  for (int64_t s = 0; s < n_slots; ++s)
    require(std::isfinite(bias[s]) && std::isfinite(scale[s]), "bias and scale must be finite");
  for (int64_t b = 0; b < n_blocks; ++b) {
    const int64_t slots = block_slot[b + 1] - block_slot[b];
    require(slots >= 1 && slots <= kMaxBlockSlots, "a block must have 1 to 256 slots");
    require(bucket_start[b] < bucket_start[b + 1], "a block must have at least one bucket_offset");
    require_block(block(b), data_start[b + 1] - data_start[b], n_features);
  }
}

WeightBlocks::WeightBlocks(int64_t n_features, const In1<int64_t>& node_block, const In1<int64_t>& block_slot,
                           const In1<int64_t>& bucket_start, const In1<int64_t>& data_start, const In1<uint8_t>& shift,
                           const In1<uint32_t>& bucket_offset, const In1<uint8_t>& data, const In1<float>& bias,
                           const In1<float>& scale)
    : n_features_(n_features) {
  const auto size = [](const auto& a) { return static_cast<int64_t>(a.shape(0)); };
  require(size(node_block) >= 1 && size(block_slot) >= 1, "node_block and block_slot must not be empty");
  require(size(bucket_start) == size(block_slot) && size(data_start) == size(block_slot) &&
              size(shift) == size(block_slot) - 1,
          "block_slot, bucket_start, data_start and shift must be about the same blocks");
  require(size(bias) == size(scale), "bias and scale must have the same length");
  view_ = {node_block.data(),    block_slot.data(), bucket_start.data(), data_start.data(), shift.data(),
           bucket_offset.data(), data.data(),       bias.data(),         scale.data(),      size(node_block) - 1,
           size(block_slot) - 1, size(bias),        size(bucket_offset), size(data)};
  view_.validate(n_features_);
}

}  // namespace metarank
