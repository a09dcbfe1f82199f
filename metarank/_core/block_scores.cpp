#include "block_scores.h"

#include <algorithm>

#include "float8.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr std::int64_t kWidestDense = 32;
// A block is laid open when the queries bring one value for so many of its bytes.
constexpr std::int64_t kBytesPerValue = 6;

template <Link link>
inline __attribute__((always_inline)) void costs_of(float* z, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 8) {
    const Float8 v = load_float8(z + i);
    Float8 cost;
    if constexpr (link == Link::logistic) {
      const Float8 magnitude = v < float8(0.0f) ? v : -v;
      cost = larger(-v, float8(0.0f)) + log1p_float8(exp_float8(magnitude));
    } else {
      const Float8 gap = larger(float8(1.0f) - v, float8(0.0f));
      cost = gap;
      for (int power = 1; power < static_cast<int>(link); ++power) cost *= gap;
    }
    store_float8(z + i, cost);
  }
}

METARANK_DISPATCH void all_costs(Link link, float* z, std::int64_t n) {
  switch (link) {
    case Link::logistic: return costs_of<Link::logistic>(z, n);
    case Link::hinge: return costs_of<Link::hinge>(z, n);
    case Link::squared_hinge: return costs_of<Link::squared_hinge>(z, n);
    case Link::cubed_hinge: return costs_of<Link::cubed_hinge>(z, n);
    case Link::hinge_to_4: return costs_of<Link::hinge_to_4>(z, n);
    case Link::hinge_to_5: return costs_of<Link::hinge_to_5>(z, n);
  }
}

METARANK_DISPATCH void all_probabilities(float* costs, std::int64_t n) {
  for (std::int64_t i = 0; i < n; i += 8) store_float8(costs + i, exp_float8(-load_float8(costs + i)));
}

template <int width>
inline __attribute__((always_inline)) void dense_sums(const SparseRow& x, const std::uint32_t* row_of,
                                                      const float* rows, float* out) {
  Float8 sum[width];
  for (int w = 0; w < width; ++w) sum[w] = float8(0.0f);
  for (std::int64_t j = 0; j < x.size; ++j) {
    const float* row = rows + static_cast<std::size_t>(row_of[x.index[j]]) * (8 * width);
    const Float8 v = float8(x.value[j]);
    for (int w = 0; w < width; ++w) sum[w] += v * load_float8(row + 8 * w);
  }
  for (int w = 0; w < width; ++w) store_float8(out + 8 * w, sum[w]);
}

METARANK_DISPATCH void all_dense_sums(const SparseRow* const* queries, std::int64_t m, const std::uint32_t* row_of,
                                      const float* rows, std::int64_t stride, float* out) {
  for (std::int64_t q = 0; q < m; ++q, out += stride) switch (stride / 8) {
      case 1: dense_sums<1>(*queries[q], row_of, rows, out); break;
      case 2: dense_sums<2>(*queries[q], row_of, rows, out); break;
      case 3: dense_sums<3>(*queries[q], row_of, rows, out); break;
      default: dense_sums<4>(*queries[q], row_of, rows, out); break;
    }
}

#if defined(__x86_64__)
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
#else
inline void prefetch(const void*) {}
#endif

// sums[slot] += x * weight for the entries of a row, four at a time: those beyond the row meet x = 0,
// which changes no sum. Any byte is a slot of `sums` (256).
inline void add_entries(const std::uint8_t* entries, std::int32_t count, float x, float* sums) {
  for (; count > 0; count -= 4, entries += 4 * kEntryBytes) {
    const WeightRow row{entries, 4};
    for (std::int32_t e = 0; e < 4; ++e) sums[row.slot(e)] += (e < count ? x : 0.0f) * row.weight(e);
  }
}

}  // namespace

void edge_costs(Link link, float* margins, std::int64_t n) { all_costs(link, margins, n); }

void probabilities(float* costs, std::int64_t n) {
  const std::int64_t whole = n / 8 * 8;
  all_probabilities(costs, whole);
  float rest[8] = {0};
  std::copy(costs + whole, costs + n, rest);
  all_probabilities(rest, 8);
  std::copy(rest, rest + (n - whole), costs + whole);
}

void BlockScores::open(const WeightBlock& block, std::int64_t n_values) {
  block_ = block;
  stride_ = (block.n_slots + 7) / 8 * 8;
  features_.clear();
  if (n_values * kBytesPerValue < block.n_bytes()) {
    layout_ = Layout::buckets;
    return;
  }
  row_of_.resize(static_cast<std::size_t>(n_features_), 0);
  layout_ = stride_ <= kWidestDense ? Layout::dense : Layout::rows;
  if (layout_ == Layout::dense)
    dense_.assign(static_cast<std::size_t>(stride_), 0.0f);
  else
    rows_.assign(1, {nullptr, 0});
  block.for_each_row([&](std::int32_t feature, const WeightRow& row) {
    features_.push_back(feature);
    row_of_[static_cast<std::size_t>(feature)] = static_cast<std::uint32_t>(features_.size());
    if (layout_ == Layout::dense) {
      const std::size_t at = dense_.size();
      dense_.resize(at + static_cast<std::size_t>(stride_), 0.0f);
      for (std::int32_t e = 0; e < row.count; ++e) dense_[at + row.slot(e)] = row.weight(e);
    } else {
      rows_.push_back(row);
    }
  });
}

void BlockScores::close() {
  for (const std::int32_t f : features_) row_of_[static_cast<std::size_t>(f)] = 0;
  features_.clear();
}

// First ask for all the memory, then look: the misses overlap.
void BlockScores::find_rows(const SparseRow& x) {
  found_.resize(static_cast<std::size_t>(x.size));
  std::size_t n = 0;
  const auto keep = [&](const WeightRow& row, float value) {
    found_[n] = {row.entries, row.count, value};
    n += row.count > 0;
  };
  if (layout_ == Layout::rows) {
    for (std::int64_t j = 0; j < x.size; ++j) keep(rows_[row_of_[static_cast<std::size_t>(x.index[j])]], x.value[j]);
  } else {
    const auto* end = std::upper_bound(x.index, x.index + x.size, block_.last_feature());
    for (const std::int32_t* f = x.index; f < end; ++f) {
      const std::uint8_t* bucket = block_.data + block_.bucket_offset[*f >> block_.shift];
      prefetch(bucket);
      prefetch(bucket + 48);
    }
    for (std::int64_t j = 0; j < end - x.index; ++j) keep(block_.find(x.index[j]), x.value[j]);
  }
  found_.resize(n);
}

void BlockScores::margins(const SparseRow* const* queries, std::int64_t m, float* out) {
  if (layout_ == Layout::dense) {
    all_dense_sums(queries, m, row_of_.data(), dense_.data(), stride_, out);
  } else {
    for (std::int64_t q = 0; q < m; ++q) {
      float sums[kMaxBlockSlots] = {0};
      find_rows(*queries[q]);
      for (const Found& row : found_) add_entries(row.entries, row.count, row.x, sums);
      std::copy_n(sums, stride_, out + q * stride_);
    }
  }
  for (std::int64_t q = 0; q < m; ++q)
    for (std::int32_t s = 0; s < block_.n_slots; ++s) {
      float& z = out[q * stride_ + s];
      z = block_.scale[s] * z + block_.bias[s];
    }
}

}  // namespace metarank
