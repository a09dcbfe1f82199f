#include "label_partition.h"

#include <algorithm>

#include "sparse_rows.h"
#include "parallel.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr int64_t kTile = 32;  // columns handled together

// Columns [begin, end) of one row's part: out[index of a] += value of a times (c D).
METARANK_KERNEL void add_outer_product(const SparseRow& a, const SparseRow& c, const float* D, int64_t width,
                                       int64_t begin, int64_t end, float* out) {
  for (int64_t t = begin; t < end; t += kTile) {
    float row[kTile] = {0};
    for (int64_t j = 0; j < c.size; ++j)
      for (int64_t i = 0; i < kTile; ++i) row[i] += c.value[j] * D[c.index[j] * width + t + i];
    for (int64_t j = 0; j < a.size; ++j)
      for (int64_t i = 0; i < kTile; ++i) out[a.index[j] * width + t + i] += a.value[j] * row[i];
  }
}

}  // namespace

Array2<float> transposed_product(const CsrView& left, const CsrView& middle, const In2<float>& D, int n_threads) {
  const auto width = static_cast<int64_t>(D.shape(1));
  require(width > 0 && width % kTile == 0, "D must have a positive multiple of 32 columns");
  const SparseRows A = require_csr(left), C = require_csr(middle);
  require(A.n_rows == C.n_rows, "A and C must have the same number of rows");
  require(middle.n_columns == static_cast<int64_t>(D.shape(0)), "C must have a column for each row of D");
  std::vector<float> out(left.n_columns * width);
  // A task owns its columns: rows are added in ascending order whatever the threads.
  const int64_t tiles = width / kTile, share = (tiles + n_threads - 1) / n_threads * kTile;
  parallel_for(width, n_threads, share, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = 0; i < A.n_rows; ++i)
      by_level<add_outer_product>(A.row(i), C.row(i), D.data(), width, begin, end, out.data());
  });
  return to_array(std::move(out), left.n_columns, width);
}

}  // namespace metarank
