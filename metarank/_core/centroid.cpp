#include "centroid.h"

#include "arrays.h"
#include "parallel.h"
#include "distances.h"
#include "inverted_index.h"

namespace metarank {

namespace {

void check_pairs(const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, std::int64_t n_queries,
                 std::int64_t n_labels) {
  const auto m = static_cast<std::int64_t>(labels.shape(0));
  require(static_cast<std::int64_t>(indptr.shape(0)) == n_queries + 1, "candidates must have one list a row of X");
  require(indptr.data()[0] == 0 && indptr.data()[n_queries] == m,
          "candidates.indptr must start at 0 and end at the number of pairs");
  for (std::int64_t i = 0; i < n_queries; ++i)
    require(indptr.data()[i] <= indptr.data()[i + 1], "candidates.indptr must not decrease");
  for (std::int64_t p = 0; p < m; ++p)
    require(labels.data()[p] >= 0 && labels.data()[p] < n_labels, "candidates.labels must lie in [0, n_labels)");
}

}  // namespace

Array2<float> label_means(In2<float> X, In1<std::int64_t> label_indptr, In1<std::int32_t> label_rows, int n_threads) {
  const auto n = static_cast<std::int64_t>(X.shape(0)), d = static_cast<std::int64_t>(X.shape(1));
  require(label_indptr.shape(0) >= 1, "label_indptr must not be empty");
  const auto n_labels = static_cast<std::int64_t>(label_indptr.shape(0)) - 1;
  for (std::int64_t l = 0; l < n_labels; ++l)
    require(0 <= label_indptr.data()[l] && label_indptr.data()[l] <= label_indptr.data()[l + 1] &&
                label_indptr.data()[l + 1] <= static_cast<std::int64_t>(label_rows.shape(0)),
            "label_indptr must not decrease nor exceed label_rows");
  for (std::size_t i = 0; i < label_rows.shape(0); ++i)
    require(label_rows.data()[i] >= 0 && label_rows.data()[i] < n, "label_rows must lie in [0, n)");
  std::vector<float> means(static_cast<std::size_t>(n_labels * d));
  parallel_for(n_labels, n_threads, 1, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<double> sum(static_cast<std::size_t>(d));
    for (std::int64_t l = begin; l < end; ++l) {
      std::fill(sum.begin(), sum.end(), 0.0);
      const std::int64_t first = label_indptr.data()[l], last = label_indptr.data()[l + 1];
      for (std::int64_t i = first; i < last; ++i) {
        const float* x = X.data() + static_cast<std::int64_t>(label_rows.data()[i]) * d;
        for (std::int64_t j = 0; j < d; ++j) sum[static_cast<std::size_t>(j)] += x[j];
      }
      for (std::int64_t j = 0; j < d && last > first; ++j)
        means[static_cast<std::size_t>(l * d + j)] =
            static_cast<float>(sum[static_cast<std::size_t>(j)] / static_cast<double>(last - first));
    }
  });
  return to_array(std::move(means), static_cast<std::size_t>(n_labels), static_cast<std::size_t>(d));
}

namespace {

METARANK_KERNEL void dense_pair(const float* x, const float* c, std::int64_t d, float* sq_l2, float* product,
                                float* sq_c) {
  *sq_l2 = squared_l2(x, c, d);
  *product = dot(x, c, d);
  *sq_c = dot(c, c, d);
}

}  // namespace

Array2<float> centroid_distances_dense(In2<float> centroids, In1<std::uint8_t> known, double max_sq_norm,
                                       In2<float> Q, In1<std::int64_t> pair_indptr, In1<std::int32_t> pair_labels,
                                       int n_threads) {
  const auto n_queries = static_cast<std::int64_t>(Q.shape(0)), d = static_cast<std::int64_t>(Q.shape(1));
  require(centroids.shape(1) == Q.shape(1), "X must have as many features as the centroids");
  require(known.shape(0) == centroids.shape(0), "known must have one entry a label");
  check_pairs(pair_indptr, pair_labels, n_queries, static_cast<std::int64_t>(centroids.shape(0)));
  const auto m = static_cast<std::int64_t>(pair_labels.shape(0));
  std::vector<float> out(2 * static_cast<std::size_t>(m));
  parallel_for(n_queries, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t q = begin; q < end; ++q) {
      const float* x = Q.data() + q * d;
      const float sq_x = dot(x, x, d);
      for (std::int64_t p = pair_indptr.data()[q]; p < pair_indptr.data()[q + 1]; ++p) {
        const std::int32_t label = pair_labels.data()[p];
        double key = far_key(kL2, sq_x, 0.0, max_sq_norm, 0.0), cosine = 1.0;
        if (known.data()[label]) {
          float sq_l2, product, sq_c;
          by_level<dense_pair>(x, centroids.data() + static_cast<std::int64_t>(label) * d, d, &sq_l2, &product, &sq_c);
          key = sq_l2;
          cosine = cosine_distance(product, sq_x, sq_c);
        }
        out[static_cast<std::size_t>(p)] = distance_of(kL2, key);
        out[static_cast<std::size_t>(m + p)] = distance_of(kCosine, cosine);
      }
    }
  });
  return to_array(std::move(out), 2, static_cast<std::size_t>(m));
}

Array1<double> csr_sq_norms(std::int64_t n_features, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                            In1<float> data) {
  require(indptr.shape(0) >= 1, "indptr must not be empty");
  require(indices.shape(0) == data.shape(0), "indices and data must have the same length");
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  check_csr(n, n_features, indptr.data(), static_cast<std::int64_t>(data.shape(0)), indices.data());
  std::vector<double> sq(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i)
    sq[static_cast<std::size_t>(i)] = SparseRow{indices.data() + indptr.data()[i], data.data() + indptr.data()[i],
                                                indptr.data()[i + 1] - indptr.data()[i]}
                                          .sq_norm();
  return to_array(std::move(sq));
}

}  // namespace metarank
