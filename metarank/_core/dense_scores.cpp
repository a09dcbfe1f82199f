#include "dense_scores.h"

#include <algorithm>
#include <bit>

#include "distances.h"
#include "sparse_rows.h"
#include "parallel.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr int64_t kRows = 16;  // rows a block
constexpr int64_t kTile = 32;  // rows of the other side that stay in the nearest cache

void require_same_width(const In2<float>& a, const In2<float>& b) {
  require(a.shape(1) == b.shape(1), "both sets of rows must have the same number of columns, got " +
                                        std::to_string(a.shape(1)) + " and " + std::to_string(b.shape(1)));
}

// out[i, j] = of(a_i, b_j, j) for a block of rows of A.
template <typename Of>
METARANK_INLINE void for_tiles(const float* A, int64_t rows, const float* B, int64_t m, int64_t d, float* out, Of of) {
  for (int64_t tile = 0; tile < m; tile += kTile)
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = tile; j < std::min(m, tile + kTile); ++j) out[i * m + j] = of(A + i * d, B + j * d, j);
}

METARANK_KERNEL void distance_block(bool is_l1, const float* A, int64_t rows, const float* B, int64_t m, int64_t d,
                                    float* D) {
  if (is_l1)
    for_tiles(A, rows, B, m, d, D,
              [d](const float* a, const float* b, int64_t) METARANK_LAMBDA_INLINE { return l1(a, b, d); });
  else
    for_tiles(A, rows, B, m, d, D,
              [d](const float* a, const float* b, int64_t) METARANK_LAMBDA_INLINE { return squared_l2(a, b, d); });
}

METARANK_KERNEL void score_block(const float* Q, int64_t rows, const float* F, const float* bias, int64_t n_labels,
                                 int64_t d, float* out) {
  for_tiles(Q, rows, F, n_labels, d, out,
            [=](const float* q, const float* f, int64_t l) METARANK_LAMBDA_INLINE { return bias[l] + dot(q, f, d); });
}

METARANK_KERNEL void score_pairs(const float* q, const float* F, const float* bias, const int32_t* labels, int64_t n,
                                 int64_t d, float* out) {
  for (int64_t p = 0; p < n; ++p) out[p] = bias[labels[p]] + dot(q, F + labels[p] * d, d);
}

// exp(-t) for t >= 0 to 2 units in the last place (Cephes' expf), without a branch, so that loops over it vectorise.
// Below 1e-37 the result stays there.
METARANK_INLINE float exp_minus(float t) {
  const float x = -std::min(t, 85.0f);
  const auto n = static_cast<int32_t>(x * 1.44269504f - 0.5f);
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

METARANK_KERNEL void exp_block(float* K, int64_t size, float gamma) {
  for (int64_t i = 0; i < size; ++i) K[i] = exp_minus(gamma * K[i]);
}

// Kernel values of a block of rows.
void kernel_block(const std::string& metric, float gamma, const float* A, int64_t rows, const In2<float>& B, float* K) {
  const auto m = static_cast<int64_t>(B.shape(0)), d = static_cast<int64_t>(B.shape(1));
  by_level<distance_block>(metric == "l1", A, rows, B.data(), m, d, K);
  if (gamma > 0) by_level<exp_block>(K, rows * m, gamma);
}

void require_metric(const std::string& metric) {
  require(metric == "l1" || metric == "squared_l2", "metric must be 'squared_l2' or 'l1', got '" + metric + "'");
}

}  // namespace

Array2<float> kernel_matrix(In2<float> A, In2<float> B, const std::string& metric, float gamma, int n_threads) {
  require_same_width(A, B);
  require_metric(metric);
  const size_t n = A.shape(0), m = B.shape(0), d = A.shape(1);
  std::vector<float> K(n * m);
  parallel_for(n, n_threads, kRows, [&](int64_t begin, int64_t end, int) {
    kernel_block(metric, gamma, A.data() + begin * d, end - begin, B, K.data() + begin * m);
  });
  return to_array(std::move(K), n, m);
}

Array1<float> kernel_machine(In2<float> X, In2<float> support, In2<float> dual, Values bias, const std::string& metric,
                             float gamma, Indptr indptr, Ids labels, int n_threads) {
  require_same_width(X, support);
  require_metric(metric);
  require(dual.shape(1) == support.shape(0) && bias.shape(0) == dual.shape(0),
          "dual must have shape (number of labels, number of support rows) and bias one entry a label");
  const size_t n = X.shape(0), m = support.shape(0), d = X.shape(1);
  require_pairs(indptr, labels, n, dual.shape(0));
  std::vector<float> out(labels.shape(0));
  parallel_for(n, n_threads, kRows, [&](int64_t begin, int64_t end, int) {
    std::vector<float> K((end - begin) * m);
    kernel_block(metric, gamma, X.data() + begin * d, end - begin, support, K.data());
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = indptr(i);
      by_level<score_pairs>(K.data() + (i - begin) * m, dual.data(), bias.data(), labels.data() + first,
                            indptr(i + 1) - first, m, out.data() + first);
    }
  });
  return to_array(std::move(out));
}

Array2<float> vector_scores(In2<float> Q, In2<float> F, Values bias, int n_threads) {
  require_same_width(Q, F);
  require(bias.shape(0) == F.shape(0), "bias must have an entry a label");
  const size_t n = Q.shape(0), n_labels = F.shape(0), d = Q.shape(1);
  std::vector<float> out(n * n_labels);
  parallel_for(n, n_threads, kRows, [&](int64_t begin, int64_t end, int) {
    by_level<score_block>(Q.data() + begin * d, end - begin, F.data(), bias.data(), n_labels, d,
                          out.data() + begin * n_labels);
  });
  return to_array(std::move(out), n, n_labels);
}

Array1<float> vector_scores_of_pairs(In2<float> Q, In2<float> F, Values bias, Indptr indptr, Ids labels,
                                     int n_threads) {
  require_same_width(Q, F);
  require(bias.shape(0) == F.shape(0), "bias must have an entry a label");
  const size_t n = Q.shape(0), d = Q.shape(1);
  require_pairs(indptr, labels, n, F.shape(0));
  std::vector<float> out(labels.shape(0));
  parallel_for(n, n_threads, kRows, [&](int64_t begin, int64_t end, int) {
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = indptr(i);
      by_level<score_pairs>(Q.data() + i * d, F.data(), bias.data(), labels.data() + first, indptr(i + 1) - first, d,
                            out.data() + first);
    }
  });
  return to_array(std::move(out));
}

namespace {

METARANK_KERNEL Sums sums_of_pair(const float* x, const float* c, int64_t d, float* sq_c) {
  *sq_c = dot(c, c, d);
  return {squared_l2(x, c, d), 0.0f, dot(x, c, d)};
}

}  // namespace

Array2<float> centroid_distances_dense(In2<float> centroids, In1<uint8_t> known, double max_sq_norm, In2<float> Q,
                                       Indptr indptr, Ids labels, int n_threads) {
  require_same_width(Q, centroids);
  require(known.shape(0) == centroids.shape(0), "known must have one entry a label");
  const size_t n = Q.shape(0), d = Q.shape(1), m = labels.shape(0);
  require_pairs(indptr, labels, n, centroids.shape(0));
  std::vector<float> out(2 * m);
  parallel_for(n, n_threads, kRows, [&](int64_t begin, int64_t end, int) {
    for (int64_t q = begin; q < end; ++q) {
      const float* x = Q.data() + q * d;
      const float sq_x = dot(x, x, d);
      for (int64_t p = indptr(q); p < indptr(q + 1); ++p) {
        double key = far_key(kL2, sq_x, 0.0, max_sq_norm, 0.0), cosine = 1.0;
        if (known(labels(p))) {
          float sq_c;
          const Sums sums = by_level<sums_of_pair>(x, centroids.data() + labels(p) * d, d, &sq_c);
          key = sums.squared_l2;
          cosine = cosine_distance(sums.dot, sq_x, sq_c);
        }
        out[p] = distance_of(kL2, key);
        out[m + p] = distance_of(kCosine, cosine);
      }
    }
  });
  return to_array(std::move(out), 2, m);
}

}  // namespace metarank
