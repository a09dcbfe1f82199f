#include "vector_scores.h"

#include <algorithm>

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr std::int64_t kRows = 16;  // queries a block
constexpr std::int64_t kTile = 32;  // labels that stay in the nearest cache

METARANK_KERNEL void score_block(const float* Q, std::int64_t rows, const float* F, const float* bias,
                                 std::int64_t n_labels, std::int64_t d, float* out) {
  for (std::int64_t tile = 0; tile < n_labels; tile += kTile)
    for (std::int64_t i = 0; i < rows; ++i)
      for (std::int64_t l = tile; l < std::min(n_labels, tile + kTile); ++l)
        out[i * n_labels + l] = bias[l] + dot(Q + i * d, F + l * d, d);
}

METARANK_KERNEL void score_pairs(const float* q, const float* F, const float* bias, const std::int32_t* labels,
                                 std::int64_t n, std::int64_t d, float* out) {
  for (std::int64_t p = 0; p < n; ++p) out[p] = bias[labels[p]] + dot(q, F + labels[p] * d, d);
}

void require_vectors(const In2<float>& Q, const In2<float>& F, const In1<float>& bias) {
  require(Q.shape(1) == F.shape(1), "queries and labels must have as many columns, got " +
                                        std::to_string(Q.shape(1)) + " and " + std::to_string(F.shape(1)));
  require(bias.shape(0) == F.shape(0), "bias must have an entry a label");
}

}  // namespace

Array2<float> vector_scores(const In2<float>& Q, const In2<float>& F, const In1<float>& bias, int n_threads) {
  require_vectors(Q, F, bias);
  const auto n = static_cast<std::int64_t>(Q.shape(0)), n_labels = static_cast<std::int64_t>(F.shape(0)),
             d = static_cast<std::int64_t>(Q.shape(1));
  std::vector<float> out(Q.shape(0) * F.shape(0));
  parallel_for(n, n_threads, kRows, [&](std::int64_t begin, std::int64_t end, int) {
    by_level<score_block>(Q.data() + begin * d, end - begin, F.data(), bias.data(), n_labels, d, out.data() + begin *
                          n_labels);
  });
  return to_array(std::move(out), Q.shape(0), F.shape(0));
}

Array1<float> vector_scores_of_pairs(const In2<float>& Q, const In2<float>& F, const In1<float>& bias,
                                     const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels,
                                     int n_threads) {
  require_vectors(Q, F, bias);
  const auto n = static_cast<std::int64_t>(Q.shape(0)), d = static_cast<std::int64_t>(Q.shape(1));
  require_pairs(indptr, labels, n, static_cast<std::int64_t>(F.shape(0)));
  std::vector<float> out(labels.shape(0));
  parallel_for(n, n_threads, kRows, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = indptr.data()[i], last = indptr.data()[i + 1];
      by_level<score_pairs>(Q.data() + i * d, F.data(), bias.data(), labels.data() + first, last - first, d, out.data()
                            + first);
    }
  });
  return to_array(std::move(out));
}

}  // namespace metarank
