#include "label_vectors.h"

#include <algorithm>
#include <cmath>

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlockRows = 2048;  // rows projected at a time: n projected rows are never stored
constexpr std::int64_t kTile = 32;         // columns of a dense matrix handled together; widths are multiples

struct DenseColumns {  // columns [begin, end) of a dense matrix, a multiple of kTile of them
  std::int64_t width, begin, end;
};

// Largest absolute value, or 1: sums of values divided by it cannot overflow, and directions do not change.
float largest(const float* values, std::size_t n) {
  float m = 0.0f;
  for (std::size_t i = 0; i < n; ++i) m = std::max(m, std::fabs(values[i]));
  return m > 0.0f ? m : 1.0f;
}

// B[index_j] += value_j p for the entries of one sparse row.
METARANK_KERNEL void scatter(const std::int32_t* index, const float* value, std::int64_t nnz, float unit,
                             const float* p, DenseColumns columns, float* B) {
  for (std::int64_t c = columns.begin; c < columns.end; c += kTile)
    for (std::int64_t j = 0; j < nnz; ++j) {
      float* b = B + index[j] * columns.width + c;
      const float x = value[j] * unit;
      for (std::int64_t i = 0; i < kTile; ++i) b[i] += x * p[c + i];
    }
}

// out = sum_j value_j Q[index_j], entries in their order.
METARANK_KERNEL void gather(const std::int32_t* index, const float* value, std::int64_t nnz, float unit,
                            const float* Q, std::int64_t width, float* out) {
  for (std::int64_t c = 0; c < width; c += kLanes) {
    float sum[kLanes] = {0};
    for (std::int64_t j = 0; j < nnz; ++j) {
      const float* q = Q + index[j] * width + c;
      const float x = value[j] * unit;
      for (int i = 0; i < kLanes; ++i) sum[i] += x * q[i];
    }
    for (int i = 0; i < kLanes; ++i) out[c + i] = sum[i];
  }
}

METARANK_KERNEL void add_scaled(const float* x, float a, std::int64_t d, float* sum) {
  for (std::int64_t j = 0; j < d; ++j) sum[j] += a * x[j];
}

void normalise(float* v, std::int64_t d) {
  double sq = 0.0;
  for (std::int64_t j = 0; j < d; ++j) sq += static_cast<double>(v[j]) * v[j];
  const double norm = std::sqrt(sq);
  for (std::int64_t j = 0; j < d && norm > 0.0; ++j) v[j] = static_cast<float>(v[j] / norm);
}

void require_tiles(std::int64_t width, const std::string& name) {
  require(width >= kTile && width % kTile == 0,
          name + " must have a positive multiple of " + std::to_string(kTile) + " columns");
}

// Shares of `width` columns for the threads: whole tiles, one share each.
std::int64_t share(std::int64_t width, int n_threads) {
  const std::int64_t tiles = width / kTile, threads = std::max(1, n_threads);
  return std::max<std::int64_t>(1, (tiles + threads - 1) / threads) * kTile;
}

}  // namespace

Array2<float> feature_range(In1<std::int64_t> x_indptr, In1<std::int32_t> x_indices, In1<float> x_data,
                            std::int64_t n_features, In1<std::int64_t> y_indptr, In1<std::int32_t> y_indices,
                            In1<float> y_data, In2<float> S, int n_threads) {
  require(n_features >= 0, "n_features must not be negative");
  const auto width = static_cast<std::int64_t>(S.shape(1));
  require_tiles(width, "S");
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features);
  const SparseRows Y = require_csr(y_indptr, y_indices, y_data, static_cast<std::int64_t>(S.shape(0)));
  require(x_indptr.shape(0) == y_indptr.shape(0), "X and Y must have the same number of rows");
  const auto n = static_cast<std::int64_t>(x_indptr.shape(0)) - 1;
  std::vector<float> B(static_cast<std::size_t>(n_features * width));
  const float x_unit = 1.0f / largest(X.data, x_data.shape(0)), y_unit = 1.0f / largest(Y.data, y_data.shape(0));
  // A task owns its columns of B: rows are added in ascending order whatever the threads.
  parallel_for(width, n_threads, share(width, n_threads), [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<float> p(static_cast<std::size_t>(width));
    for (std::int64_t i = 0; i < n; ++i) {
      if (Y.indptr[i] == Y.indptr[i + 1]) continue;
      std::fill(p.begin() + begin, p.begin() + end, 0.0f);
      for (std::int64_t e = Y.indptr[i]; e < Y.indptr[i + 1]; ++e)
        by_level<add_scaled>(S.data() + Y.indices[e] * width + begin, Y.data[e] * y_unit, end - begin, p.data() +
                             begin);
      by_level<scatter>(X.indices + X.indptr[i], X.data + X.indptr[i], X.indptr[i + 1] - X.indptr[i], x_unit, p.data(),
                        {width, begin, end}, B.data());
    }
  });
  return to_array(std::move(B), static_cast<std::size_t>(n_features), static_cast<std::size_t>(width));
}

Array2<float> label_vectors(In1<std::int64_t> x_indptr, In1<std::int32_t> x_indices, In1<float> x_data,
                            In1<std::int64_t> y_indptr, In1<std::int32_t> y_indices, In1<float> y_data,
                            std::int64_t n_labels, In2<float> Q, int n_threads) {
  require(n_labels >= 0, "n_labels must not be negative");
  const auto width = static_cast<std::int64_t>(Q.shape(1));
  require_tiles(width, "Q");
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, static_cast<std::int64_t>(Q.shape(0)));
  const SparseRows Y = require_csr(y_indptr, y_indices, y_data, n_labels);
  require(x_indptr.shape(0) == y_indptr.shape(0), "X and Y must have the same number of rows");
  const auto n = static_cast<std::int64_t>(x_indptr.shape(0)) - 1;
  std::vector<float> V(static_cast<std::size_t>(n_labels * width));
  const float x_unit = 1.0f / largest(X.data, x_data.shape(0)), y_unit = 1.0f / largest(Y.data, y_data.shape(0));
  std::vector<float> block(static_cast<std::size_t>(std::min(n, kBlockRows) * width));
  for (std::int64_t first = 0; first < n; first += kBlockRows) {
    const std::int64_t rows = std::min(kBlockRows, n - first);
    parallel_for(rows, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t at = X.indptr[first + i];
        by_level<gather>(X.indices + at, X.data + at, X.indptr[first + i + 1] - at, x_unit, Q.data(), width,
                         block.data() + i * width);
      }
    });
    parallel_for(width, n_threads, share(width, n_threads), [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t i = 0; i < rows; ++i)
        for (std::int64_t e = Y.indptr[first + i]; e < Y.indptr[first + i + 1]; ++e)
          by_level<add_scaled>(block.data() + i * width + begin, Y.data[e] * y_unit, end - begin, V.data() +
                               Y.indices[e] * width + begin);
    });
  }
  parallel_for(n_labels, n_threads, 1024, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t l = begin; l < end; ++l) normalise(V.data() + l * width, width);
  });
  return to_array(std::move(V), static_cast<std::size_t>(n_labels), static_cast<std::size_t>(width));
}

}  // namespace metarank
