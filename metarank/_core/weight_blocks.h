// Sparse linear classifiers in little memory: stored for looking up, by feature, the weights of many at once.
//
// A *block* holds the classifiers of at most 256 consecutive slots of one node; a node owns consecutive
// blocks. Within a block the weights lie by feature, so that one look-up serves all its classifiers:
//
//   bucket  features f with the same f >> shift; `bucket_offset` points at its bytes, empty where it has none
//   bytes   number of rows - 1 (2 bytes) | the rows' f's low bits (1 byte each if shift <= 8, else 2) |
//           their numbers of entries - 1 (1 byte each) | their entries (slot 1 byte, weight 2 bytes)
//   row     a feature with at least one non-zero weight in the block
//
// `shift` is chosen so that a bucket holds about four rows: a row is found by one comparison of vectors,
// within one or two cache lines. A weight is scale[slot] * int16, so an entry takes
// three bytes, and a whole model some four to five bytes a weight.
//
// The margin of a query x in a slot is scale[slot] * (sum over the features of x, ascending, of
// x_f * int16) + bias[slot], in float32, products and sums rounded one by one: the same bytes wherever
// it is computed.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <vector>

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

#include "arrays.h"

namespace metarank {

constexpr int64_t kMaxBlockSlots = 256;
constexpr int64_t kEntryBytes = 3;
// Bytes behind the last bucket, so that a look-up may load whole vectors.
constexpr int64_t kBlockPadding = 64;

// The classifiers of one block as a trainer has them: CSR by feature.
struct RawBlock {
  std::vector<int32_t> feature;     // ascending, distinct
  std::vector<uint32_t> row_start;  // one more than features
  std::vector<uint8_t> slot;        // ascending within a row
  std::vector<float> weight;
  std::vector<float> bias;               // one a slot: 1 to 256 of them
};

struct EncodedBlock {
  uint8_t shift = 0;
  std::vector<uint32_t> bucket_offset;  // one more than buckets
  std::vector<uint8_t> data;
  std::vector<float> bias, scale;
};

// Weights are rounded to 1/32767 of the slot's largest; those that round to zero are dropped.
// Throws std::invalid_argument unless all numbers are finite.
EncodedBlock encode(const RawBlock& block);

// All blocks of a model, end to end; owns its memory.
struct WeightArrays {
  std::vector<int64_t> node_block{0};    // a node's first block; one more than nodes
  std::vector<int64_t> block_slot{0};    // a block's first slot; one more than blocks
  std::vector<int64_t> bucket_start{0};  // a block's first entry in bucket_offset; one more than blocks
  std::vector<int64_t> data_start{0};    // a block's first byte in data; one more than blocks
  std::vector<uint8_t> shift;
  std::vector<uint32_t> bucket_offset;   // relative to the block's first byte
  std::vector<uint8_t> data;
  std::vector<float> bias, scale;             // one a slot
};

// Frees each block once it is copied.
WeightArrays concatenate(std::vector<EncodedBlock>&& blocks, std::vector<int64_t>&& node_block);

// The entries of one feature in one block.
struct WeightRow {
  const uint8_t* entries;
  int32_t count;  // 0: none

  uint32_t slot(int32_t e) const { return entries[kEntryBytes * e]; }
  int16_t weight(int32_t e) const {
    int16_t w;
    std::memcpy(&w, entries + kEntryBytes * e + 1, sizeof w);
    return w;
  }
  // sums[slot] += x * weight.
  void add_to(float x, float* sums) const {
    const uint8_t* end = entries + kEntryBytes * count;
    for (const uint8_t* e = entries; e != end; e += kEntryBytes) {
      uint32_t both;  // and the byte behind
      std::memcpy(&both, e, sizeof both);
      sums[both & 0xff] += x * static_cast<float>(static_cast<int32_t>(both << 8) >> 16);
    }
  }
};

// One block, ready for look-ups.
struct WeightBlock {
  const uint32_t* bucket_offset;
  const uint8_t* data;
  const float* bias;
  const float* scale;
  int64_t n_buckets;
  int32_t n_slots;
  uint8_t shift;

  // No feature beyond it is in the block.
  int32_t last_feature() const { return static_cast<int32_t>((n_buckets << shift) - 1); }
  int64_t n_bytes() const { return bucket_offset[n_buckets]; }
  WeightRow find(int32_t feature) const;
  // visit(feature, row) for each row, features ascending.
  template <typename Visit>
  void for_each_row(Visit&& visit) const;
};

// The arrays of a model in someone else's memory.
struct WeightBlocksView {
  const int64_t* node_block;
  const int64_t* block_slot;
  const int64_t* bucket_start;
  const int64_t* data_start;
  const uint8_t* shift;
  const uint32_t* bucket_offset;
  const uint8_t* data;
  const float* bias;
  const float* scale;
  int64_t n_nodes, n_blocks, n_slots, n_bucket_offsets, n_bytes;

  // Throws std::invalid_argument unless no look-up can leave the arrays and the rows are as
  // `encode` writes them, features below n_features. One pass over the model.
  void validate(int64_t n_features) const;

  WeightBlock block(int64_t b) const {
    return {bucket_offset + bucket_start[b],
            data + data_start[b],
            bias + block_slot[b],
            scale + block_slot[b],
            bucket_start[b + 1] - bucket_start[b] - 1,
            static_cast<int32_t>(block_slot[b + 1] - block_slot[b]),
            shift[b]};
  }
};

namespace weight_blocks {

inline uint32_t load16(const uint8_t* p) {
  uint16_t v;
  std::memcpy(&v, p, sizeof v);
  return v;
}

// Where a row stands in its bucket.
struct Place {
  int32_t row;            // -1 if absent
  int32_t entries_before;
};

inline Place place(const uint8_t* lows, int32_t low_bytes, int32_t n, uint32_t low) {
  const uint8_t* counts = lows + low_bytes * n;
  int32_t before = 0;
  for (int32_t i = 0; i < n; ++i) {
    if ((low_bytes == 1 ? lows[i] : load16(lows + 2 * i)) == low) return {i, before + i};
    before += counts[i];
  }
  return {-1, 0};
}

#if defined(__x86_64__)
constexpr int32_t kShortBucket = 8;

// The same for n <= kShortBucket, without a branch: whether a query's feature is there is hard to
// foretell. Loads 16 bytes from `lows` and 8 from the counts, whatever n.
inline Place place_short(const uint8_t* lows, int32_t low_bytes, int32_t n, uint32_t low) {
  const __m128i v = _mm_loadu_si128(reinterpret_cast<const __m128i*>(lows));
  const __m128i equal = low_bytes == 1 ? _mm_cmpeq_epi8(v, _mm_set1_epi8(static_cast<char>(low)))
                                       : _mm_packs_epi16(_mm_cmpeq_epi16(v, _mm_set1_epi16(static_cast<short>(low))), v);
  const uint32_t hits = static_cast<uint32_t>(_mm_movemask_epi8(equal)) & ((1u << n) - 1);
  const int32_t row = std::countr_zero(hits | (1u << kShortBucket));
  uint64_t counts;
  std::memcpy(&counts, lows + low_bytes * n, sizeof counts);
  counts &= (uint64_t{1} << (8 * (row & 7))) - 1;  // those before the row
  const __m128i sum = _mm_sad_epu8(_mm_cvtsi64_si128(static_cast<long long>(counts)), _mm_setzero_si128());
  return {hits ? row : -1, _mm_cvtsi128_si32(sum) + row};
}
#endif

}  // namespace weight_blocks

inline WeightRow WeightBlock::find(int32_t feature) const {
  using namespace weight_blocks;
  const auto bucket = static_cast<int64_t>(feature >> shift);
  if (bucket >= n_buckets) return {nullptr, 0};
  const uint8_t* lows = data + bucket_offset[bucket] + 2;
  const int32_t n =
      bucket_offset[bucket] == bucket_offset[bucket + 1] ? 0 : static_cast<int32_t>(load16(lows - 2)) + 1;
  const int32_t low_bytes = shift <= 8 ? 1 : 2;
  const uint32_t low = static_cast<uint32_t>(feature) & ((1u << shift) - 1);
#if defined(__x86_64__)
  const Place at = n <= kShortBucket ? place_short(lows, low_bytes, n, low) : place(lows, low_bytes, n, low);
#else
  const Place at = place(lows, low_bytes, n, low);
#endif
  const uint8_t* counts = lows + low_bytes * n;
  return {counts + n + kEntryBytes * at.entries_before, at.row < 0 ? 0 : counts[at.row] + 1};
}

template <typename Visit>
void WeightBlock::for_each_row(Visit&& visit) const {
  using namespace weight_blocks;
  for (int64_t bucket = 0; bucket < n_buckets; ++bucket) {
    if (bucket_offset[bucket] == bucket_offset[bucket + 1]) continue;
    const uint8_t* lows = data + bucket_offset[bucket];
    const auto n = static_cast<int32_t>(load16(lows)) + 1;
    lows += 2;
    const uint8_t* counts = lows + (shift <= 8 ? n : 2 * n);
    const uint8_t* entries = counts + n;
    for (int32_t i = 0; i < n; ++i) {
      const auto low = static_cast<int64_t>(shift <= 8 ? lows[i] : load16(lows + 2 * i));
      const int32_t count = counts[i] + 1;
      visit(static_cast<int32_t>((bucket << shift) + low), WeightRow{entries, count});
      entries += kEntryBytes * count;
    }
  }
}

// A model over arrays of these names, checked once. They stay where they are, and must outlive it.
class WeightBlocks {
 public:
  WeightBlocks(int64_t n_features, const In1<int64_t>& node_block, const In1<int64_t>& block_slot,
               const In1<int64_t>& bucket_start, const In1<int64_t>& data_start,
               const In1<uint8_t>& shift, const In1<uint32_t>& bucket_offset,
               const In1<uint8_t>& data, const In1<float>& bias, const In1<float>& scale);

  int64_t n_features() const { return n_features_; }
  int64_t n_slots() const { return view_.n_slots; }
  const WeightBlocksView& view() const { return view_; }

 private:
  int64_t n_features_;
  WeightBlocksView view_;
};

}  // namespace metarank
