// Sparse linear classifiers in little memory: stored for looking up, by feature, the weights of many at once.
//
// A *block* holds the classifiers of at most 256 consecutive slots of one node; a node owns consecutive
// blocks. Within a block the weights lie by feature, so that one look-up serves all its classifiers:
//
//   bucket  features f with the same f >> shift; `bucket_offset` points at its bytes, empty where it has none
//   bytes   number of rows - 1 | the rows' f's low bits (1 byte each, as the number, if shift <= 8, else 2) |
//           their numbers of entries - 1 (1 byte each) | their entries (slot 1 byte, weight 1 byte)
//   row     a feature with at least one non-zero weight in the block
//
// `shift` is chosen so that a bucket holds about seven rows: a row is found by one comparison of vectors,
// within one or two cache lines. A weight is scale[slot] * int8, so an entry takes two bytes, and a whole
// model some three to four bytes a weight.
//
// The margin of a query x in a slot is scale[slot] * (sum over the features of x, ascending, of
// x_f * int8) + bias[slot], in float32, products and sums rounded one by one: the same bytes wherever
// it is computed.
#pragma once

#include <algorithm>
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
constexpr int64_t kEntryBytes = 2;
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

// Weights are rounded to 1/127 of the slot's largest; those that round to zero are dropped.
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

// Values appended bit by bit and then joined, with no more than one large piece of them in memory twice.
template <typename T>
class Pieces {
 public:
  void append(const std::vector<T>& part) {
    if (pieces_.empty() || pieces_.back().size() + part.size() > pieces_.back().capacity()) {
      pieces_.emplace_back();
      pieces_.back().reserve(std::max(part.size(), kPieceBytes / sizeof(T)));
    }
    pieces_.back().insert(pieces_.back().end(), part.begin(), part.end());
    size_ += part.size();
  }
  size_t size() const { return size_; }
  std::vector<T> joined(size_t padding) && {
    std::vector<T> all;
    all.reserve(size_ + padding);
    for (std::vector<T>& piece : pieces_) {
      all.insert(all.end(), piece.begin(), piece.end());
      piece = {};
    }
    all.resize(size_ + padding);
    return all;
  }

 private:
  // So large that allocators return it to the system once it is freed; what is not written takes no memory.
  static constexpr size_t kPieceBytes = 64 << 20;
  std::vector<std::vector<T>> pieces_;
  size_t size_ = 0;
};

// Collects the blocks of a model, in order.
class WeightCollector {
 public:
  void append(EncodedBlock&& block);
  WeightArrays collected(std::vector<int64_t>&& node_block) &&;

 private:
  WeightArrays all_;
  Pieces<uint8_t> data_;
  Pieces<uint32_t> bucket_offset_;
};

// The entries of one feature in one block.
struct WeightRow {
  const uint8_t* entries;
  int32_t count;  // 0: none

  uint32_t slot(int32_t e) const { return entries[kEntryBytes * e]; }
  int8_t weight(int32_t e) const { return static_cast<int8_t>(entries[kEntryBytes * e + 1]); }
  // sums[slot] += x * weight.
  void add_to(float x, float* sums) const {
    const uint8_t* end = entries + kEntryBytes * count;
    for (const uint8_t* e = entries; e != end; e += kEntryBytes) {
      sums[e[0]] += x * static_cast<float>(static_cast<int8_t>(e[1]));
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

// The number stored in so many bytes.
inline uint32_t load(const uint8_t* p, int32_t bytes) { return bytes == 1 ? *p : load16(p); }

inline Place place(const uint8_t* lows, int32_t low_bytes, int32_t n, uint32_t low) {
  const uint8_t* counts = lows + low_bytes * n;
  int32_t before = 0;
  for (int32_t i = 0; i < n; ++i) {
    if (load(lows + low_bytes * i, low_bytes) == low) return {i, before + i};
    before += counts[i];
  }
  return {-1, 0};
}

#if defined(__x86_64__)
constexpr int32_t kShortBucket = 16;

// The same for n <= kShortBucket, without a branch: whether a query's feature is there is hard to
// foretell. Loads 32 bytes from `lows` and 16 from the counts, whatever n.
inline Place place_short(const uint8_t* lows, int32_t low_bytes, int32_t n, uint32_t low) {
  const auto vector = [](const uint8_t* p) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p)); };
  const __m128i wide = _mm_set1_epi16(static_cast<short>(low));
  const __m128i equal = low_bytes == 1 ? _mm_cmpeq_epi8(vector(lows), _mm_set1_epi8(static_cast<char>(low)))
                                       : _mm_packs_epi16(_mm_cmpeq_epi16(vector(lows), wide),
                                                         _mm_cmpeq_epi16(vector(lows + 16), wide));
  const uint32_t hits = static_cast<uint32_t>(_mm_movemask_epi8(equal)) & ((1u << n) - 1);
  const int32_t row = std::countr_zero(hits | (1u << kShortBucket));
  const __m128i number = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
  const __m128i before = _mm_cmplt_epi8(number, _mm_set1_epi8(static_cast<char>(row)));
  const __m128i sums = _mm_sad_epu8(_mm_and_si128(vector(lows + low_bytes * n), before), _mm_setzero_si128());
  return {hits ? row : -1, _mm_cvtsi128_si32(sums) + _mm_extract_epi16(sums, 4) + row};
}
#endif

}  // namespace weight_blocks

inline WeightRow WeightBlock::find(int32_t feature) const {
  using namespace weight_blocks;
  const auto bucket = static_cast<int64_t>(feature >> shift);
  if (bucket >= n_buckets) return {nullptr, 0};
  const int32_t low_bytes = shift <= 8 ? 1 : 2;
  const uint8_t* const at_bucket = data + bucket_offset[bucket];
  const uint8_t* const lows = at_bucket + low_bytes;
  const int32_t n = bucket_offset[bucket] == bucket_offset[bucket + 1]
                        ? 0
                        : static_cast<int32_t>(load(at_bucket, low_bytes)) + 1;
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
  const int32_t low_bytes = shift <= 8 ? 1 : 2;
  for (int64_t bucket = 0; bucket < n_buckets; ++bucket) {
    if (bucket_offset[bucket] == bucket_offset[bucket + 1]) continue;
    const uint8_t* lows = data + bucket_offset[bucket];
    const auto n = static_cast<int32_t>(load(lows, low_bytes)) + 1;
    lows += low_bytes;
    const uint8_t* counts = lows + low_bytes * n;
    const uint8_t* entries = counts + n;
    for (int32_t i = 0; i < n; ++i) {
      const auto low = static_cast<int64_t>(load(lows + low_bytes * i, low_bytes));
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
