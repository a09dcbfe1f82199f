#include "kernel_machine.h"

#include <algorithm>
#include <bit>

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"
#include "simd.h"

namespace metarank {

namespace {

// exp(-t) for t >= 0 to 2 units in the last place (Cephes' expf), without a branch, so that loops
// over it vectorise. Below 1e-37 the result stays there.
METARANK_INLINE float exp_minus(float t) {
  const float x = -std::min(t, 85.0f);
  const auto n = static_cast<std::int32_t>(x * 1.44269504f - 0.5f);
  const float k = static_cast<float>(n);
  const float r = (x - k * 0.693359375f) + k * 2.12194440e-4f;
  float p = 1.9875691500e-4f;
  p = p * r + 1.3981999507e-3f;
  p = p * r + 8.3334519073e-3f;
  p = p * r + 4.1665795894e-2f;
  p = p * r + 1.6666665459e-1f;
  p = p * r + 5.0000001201e-1f;
  p = (p * r) * r + r + 1.0f;
  return p * std::bit_cast<float>((n + 127) << 23);
}

constexpr std::int64_t kRows = 16;  // rows a block
constexpr std::int64_t kTile = 32;  // rows of B that stay in the nearest cache

enum class Metric { kSquaredL2, kL1 };

Metric metric_of(const std::string& name) {
  if (name == "squared_l2") return Metric::kSquaredL2;
  require(name == "l1", "metric must be 'squared_l2' or 'l1', got '" + name + "'");
  return Metric::kL1;
}

// D[i, j] = distance(a_i, b_j) for a block of rows of A; each value depends on its two rows only.
template <typename Distance>
METARANK_INLINE void distance_tiles(const float* A, std::int64_t rows, const float* B, std::int64_t m, std::int64_t d,
                                    float* D, Distance distance) {
  for (std::int64_t tile = 0; tile < m; tile += kTile)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t j = tile; j < std::min(m, tile + kTile); ++j) D[i * m + j] = distance(A + i * d, B + j * d, d);
}

METARANK_KERNEL void squared_l2_block(const float* A, std::int64_t rows, const float* B, std::int64_t m,
                                      std::int64_t d, float* D) {
  distance_tiles(A, rows, B, m, d, D, squared_l2);
}

METARANK_KERNEL void l1_block(const float* A, std::int64_t rows, const float* B, std::int64_t m, std::int64_t d,
                              float* D) {
  distance_tiles(A, rows, B, m, d, D, l1);
}

void distance_block(Metric metric, const float* A, std::int64_t rows, const float* B, std::int64_t m, std::int64_t d,
                    float* D) {
  if (metric == Metric::kL1)
    by_level<l1_block>(A, rows, B, m, d, D);
  else
    by_level<squared_l2_block>(A, rows, B, m, d, D);
}

METARANK_KERNEL void exp_block(float* K, std::int64_t size, float gamma) {
  for (std::int64_t i = 0; i < size; ++i) K[i] = exp_minus(gamma * K[i]);
}

METARANK_KERNEL void dual_scores(const float* kernel_row, std::int64_t m, const float* dual, const float* bias,
                                 const std::int32_t* labels, std::int64_t n_pairs, float* out) {
  for (std::int64_t p = 0; p < n_pairs; ++p)
    out[p] = bias[labels[p]] + dot(kernel_row, dual + static_cast<std::int64_t>(labels[p]) * m, m);
}

void require_same_width(std::size_t a, std::size_t b) {
  require(a == b, "both sets of rows must have the same number of columns, got " + std::to_string(a) + " and " +
                      std::to_string(b));
}

}  // namespace

Array2<float> kernel_matrix(const In2<float>& A, const In2<float>& B, const std::string& metric_name, float gamma,
                            int n_threads) {
  require_same_width(A.shape(1), B.shape(1));
  const Metric metric = metric_of(metric_name);
  const auto m = static_cast<std::int64_t>(B.shape(0)), d = static_cast<std::int64_t>(A.shape(1));
  std::vector<float> K(A.shape(0) * B.shape(0));
  parallel_for(static_cast<std::int64_t>(A.shape(0)), n_threads, kRows,
               [&](std::int64_t begin, std::int64_t end, int) {
                 distance_block(metric, A.data() + begin * d, end - begin, B.data(), m, d, K.data() + begin * m);
                 if (gamma > 0) by_level<exp_block>(K.data() + begin * m, (end - begin) * m, gamma);
               });
  return to_array(std::move(K), A.shape(0), B.shape(0));
}

Array1<float> kernel_machine(const In2<float>& X, const In2<float>& support, const In2<float>& dual,
                             const In1<float>& bias, const std::string& metric_name, float gamma,
                             const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, int n_threads) {
  const Metric metric = metric_of(metric_name);
  require_same_width(X.shape(1), support.shape(1));
  require(dual.shape(1) == support.shape(0) && bias.shape(0) == dual.shape(0),
          "dual must have shape (number of labels, number of support rows) and bias one entry a label");
  const auto n = static_cast<std::int64_t>(X.shape(0)), m = static_cast<std::int64_t>(support.shape(0)),
             d = static_cast<std::int64_t>(X.shape(1));
  require_pairs(indptr, labels, n, static_cast<std::int64_t>(dual.shape(0)));
  std::vector<float> out(labels.shape(0));
  parallel_for(n, n_threads, kRows, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<float> K(static_cast<std::size_t>((end - begin) * m));
    distance_block(metric, X.data() + begin * d, end - begin, support.data(), m, d, K.data());
    by_level<exp_block>(K.data(), (end - begin) * m, gamma);
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = indptr.data()[i], last = indptr.data()[i + 1];
      by_level<dual_scores>(K.data() + (i - begin) * m, m, dual.data(), bias.data(), labels.data() + first, last -
                            first, out.data() + first);
    }
  });
  return to_array(std::move(out));
}

}  // namespace metarank
