#include "block_scores.h"

#include <algorithm>

#include "float8.h"
#include "simd.h"

namespace metarank {

namespace {

// A block is laid open when the queries bring one value for so many of its bytes, ...
constexpr int64_t kBytesPerValue = 6;
// ... and made dense when they bring one for so many of its cells, and it has not many more cells than weights.
constexpr int64_t kCellsPerValue = 16;
constexpr int64_t kCellsPerWeight = 32;
constexpr int64_t kMostCells = 1 << 22;
constexpr int64_t kPanel = 32;  // slots whose sums stay in registers

template <Link link>
METARANK_INLINE void costs_of(float* z, int64_t n) {
  for (int64_t i = 0; i < n; i += 8) {
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

METARANK_KERNEL void all_costs(Link link, float* z, int64_t n) {
  switch (link) {
    case Link::logistic: return costs_of<Link::logistic>(z, n);
    case Link::hinge: return costs_of<Link::hinge>(z, n);
    case Link::squared_hinge: return costs_of<Link::squared_hinge>(z, n);
    case Link::cubed_hinge: return costs_of<Link::cubed_hinge>(z, n);
    case Link::hinge_to_4: return costs_of<Link::hinge_to_4>(z, n);
    case Link::hinge_to_5: return costs_of<Link::hinge_to_5>(z, n);
  }
}

METARANK_KERNEL void all_probabilities(float* costs, int64_t n) {
  for (int64_t i = 0; i < n; i += 8) store_float8(costs + i, exp_float8(-load_float8(costs + i)));
}

template <int width>
METARANK_INLINE void dense_sums(const SparseRow& x, const uint32_t* row_of,
                                                      const float* rows, float* out) {
  Float8 sum[width];
  for (int w = 0; w < width; ++w) sum[w] = float8(0.0f);
  for (int64_t j = 0; j < x.size; ++j) {
    const float* row = rows + static_cast<size_t>(row_of[x.index[j]]) * (8 * width);
    const Float8 v = float8(x.value[j]);
    for (int w = 0; w < width; ++w) sum[w] += v * load_float8(row + 8 * w);
  }
  for (int w = 0; w < width; ++w) store_float8(out + 8 * w, sum[w]);
}

// A panel at a time, so that its rows stay in the cache.
METARANK_KERNEL void all_dense_sums(const SparseRow* const* queries, int64_t m, const uint32_t* row_of,
                                    const float* dense, int64_t n_rows, int64_t stride, float* out) {
  for (int64_t s = 0; s < stride; s += kPanel, dense += n_rows * kPanel)
    for (int64_t q = 0; q < m; ++q) switch (std::min(kPanel, stride - s) / 8) {
        case 1: dense_sums<1>(*queries[q], row_of, dense, out + q * stride + s); break;
        case 2: dense_sums<2>(*queries[q], row_of, dense, out + q * stride + s); break;
        case 3: dense_sums<3>(*queries[q], row_of, dense, out + q * stride + s); break;
        default: dense_sums<4>(*queries[q], row_of, dense, out + q * stride + s); break;
      }
}

#if defined(__x86_64__)
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }
#else
inline void prefetch(const void*) {}
#endif

}  // namespace

void edge_costs(Link link, float* margins, int64_t n) { by_level<all_costs>(link, margins, n); }

void probabilities(float* costs, int64_t n) {
  const int64_t whole = n / 8 * 8;
  by_level<all_probabilities>(costs, whole);
  float rest[8] = {0};
  std::copy(costs + whole, costs + n, rest);
  by_level<all_probabilities>(rest, 8);
  std::copy(rest, rest + (n - whole), costs + whole);
}

void BlockScores::open(const WeightBlock& block, int64_t n_values) {
  block_ = block;
  stride_ = (block.n_slots + 7) / 8 * 8;
  features_.clear();
  if (n_values * kBytesPerValue < block.n_bytes()) {
    layout_ = Layout::buckets;
    return;
  }
  layout_ = Layout::rows;
  row_of_.resize(static_cast<size_t>(n_features_), 0);
  rows_.assign(1, {nullptr, 0});
  int64_t n_weights = 0;
  block.for_each_row([&](int32_t feature, const WeightRow& row) {
    row_of_[feature] = static_cast<uint32_t>(rows_.size());
    features_.push_back(feature);
    rows_.push_back(row);
    n_weights += row.count;
  });
  const int64_t n_cells = static_cast<int64_t>(rows_.size()) * stride_;
  if (n_cells <= kMostCells && n_cells <= kCellsPerValue * n_values &&
      (stride_ <= kPanel || n_cells <= kCellsPerWeight * n_weights))
    fill_dense();
}

void BlockScores::fill_dense() {
  layout_ = Layout::dense;
  const auto n_rows = static_cast<int64_t>(rows_.size());
  dense_.assign(static_cast<size_t>(n_rows * stride_), 0.0f);
  for (int64_t r = 0; r < n_rows; ++r) {
    const WeightRow& row = rows_[r];
    for (int32_t e = 0; e < row.count; ++e) {
      const auto slot = static_cast<int64_t>(row.slot(e)), panel = slot / kPanel * kPanel;
      const int64_t width = std::min(kPanel, stride_ - panel);
      dense_[n_rows * panel + r * width + slot - panel] = row.weight(e);
    }
  }
}

void BlockScores::close() {
  for (const int32_t f : features_) row_of_[f] = 0;
  features_.clear();
}

void BlockScores::expect(const WeightBlock& block, const SparseRow& x) {
  const int32_t* end = std::upper_bound(x.index, x.index + x.size, block.last_feature());
  for (const int32_t* f = x.index; f < end; ++f) prefetch(block.data + block.bucket_offset[*f >> block.shift]);
}

// Finds all rows and asks for their memory before the first is used, so that the misses overlap.
void BlockScores::find_rows(const SparseRow& x) {
  found_.resize(static_cast<size_t>(x.size));
  size_t n = 0;
  for (int64_t j = 0; j < x.size; ++j) {
    const WeightRow row = layout_ == Layout::rows ? rows_[row_of_[x.index[j]]]
                                                  : block_.find(x.index[j]);
    prefetch(row.entries);
    prefetch(row.entries + kEntryBytes * row.count - (row.count > 0));  // an empty row may have no entries to step from
    found_[n] = {row, x.value[j]};
    n += row.count > 0;
  }
  found_.resize(n);
}

void BlockScores::margins(const SparseRow* const* queries, int64_t m, float* out) {
  if (layout_ == Layout::dense) {
    by_level<all_dense_sums>(queries, m, row_of_.data(), dense_.data(), static_cast<int64_t>(rows_.size()),
                             stride_, out);
  } else {
    std::fill_n(out, m * stride_, 0.0f);
    for (int64_t q = 0; q < m; ++q) {
      if (layout_ == Layout::buckets && q + 1 < m) expect(block_, *queries[q + 1]);
      find_rows(*queries[q]);
      for (const Found& found : found_) found.row.add_to(found.x, out + q * stride_);
    }
  }
  for (int64_t q = 0; q < m; ++q)
    for (int32_t s = 0; s < block_.n_slots; ++s) {
      float& z = out[q * stride_ + s];
      z = block_.scale[s] * z + block_.bias[s];
    }
}

}  // namespace metarank
