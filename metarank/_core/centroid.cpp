// L2 and cosine distance of each pair's row to the mean of the label's training points.
#include "bindings.h"
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

// Means of the rows of each label, rows added in the order given; a label without a row has the zero vector.
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
  {
    nb::gil_scoped_release release;
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
  }
  return to_numpy(std::move(means), static_cast<std::size_t>(n_labels), static_cast<std::size_t>(d));
}

METARANK_DISPATCH void dense_pair(const float* x, const float* c, std::int64_t d, float* sq_l2, float* product,
                                  float* sq_c) {
  *sq_l2 = squared_l2(x, c, d);
  *product = dot(x, c, d);
  *sq_c = dot(c, c, d);
}

// Two columns: L2, cosine. `known` marks the labels that have a point.
Array2<float> centroid_distances_dense(In2<float> centroids, In1<std::uint8_t> known, double max_sq_norm, In2<float> Q,
                                       In1<std::int64_t> pair_indptr, In1<std::int32_t> pair_labels, int n_threads) {
  const auto n_queries = static_cast<std::int64_t>(Q.shape(0)), d = static_cast<std::int64_t>(Q.shape(1));
  require(centroids.shape(1) == Q.shape(1), "X must have as many features as the centroids");
  require(known.shape(0) == centroids.shape(0), "known must have one entry a label");
  check_pairs(pair_indptr, pair_labels, n_queries, static_cast<std::int64_t>(centroids.shape(0)));
  const auto m = static_cast<std::int64_t>(pair_labels.shape(0));
  std::vector<float> out(2 * static_cast<std::size_t>(m));
  {
    nb::gil_scoped_release release;
    parallel_for(n_queries, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t q = begin; q < end; ++q) {
        const float* x = Q.data() + q * d;
        const float sq_x = dot(x, x, d);
        for (std::int64_t p = pair_indptr.data()[q]; p < pair_indptr.data()[q + 1]; ++p) {
          const std::int32_t label = pair_labels.data()[p];
          double key = far_key(kL2, sq_x, 0.0, max_sq_norm, 0.0), cosine = 1.0;
          if (known.data()[label]) {
            float sq_l2, product, sq_c;
            dense_pair(x, centroids.data() + static_cast<std::int64_t>(label) * d, d, &sq_l2, &product, &sq_c);
            key = sq_l2;
            cosine = cosine_distance(product, sq_x, sq_c);
          }
          out[static_cast<std::size_t>(p)] = distance_of(kL2, key);
          out[static_cast<std::size_t>(m + p)] = distance_of(kCosine, cosine);
        }
      }
    });
  }
  return to_numpy(std::move(out), 2, static_cast<std::size_t>(m));
}

// x.c with the shared features ascending, by whichever way is shorter: looking up each feature of x
// in c, or running down c with x spread out in `spread`. Zero products do not change a sum.
double sparse_dot(const SparseRow& x, const SparseRow& c, const std::vector<double>& spread) {
  double sum = 0.0;
  std::int64_t steps = 1;
  for (std::int64_t size = c.size; size > 1; size /= 2) ++steps;
  if (x.size * steps < c.size) {
    const std::int32_t* at = c.index;
    const std::int32_t* const end = c.index + c.size;
    for (std::int64_t j = 0; j < x.size; ++j) {
      at = std::lower_bound(at, end, x.index[j]);
      if (at == end) break;
      if (*at == x.index[j]) sum += static_cast<double>(x.value[j]) * c.value[at - c.index];
    }
  } else {
    for (std::int64_t j = 0; j < c.size; ++j) {
      const auto f = static_cast<std::size_t>(c.index[j]);
      require(f < spread.size(), "centroid columns must be below the number of features");
      sum += spread[f] * c.value[j];
    }
  }
  return sum;
}

// For each feature the centroids that have it: x.c of all centroids at once, where most of them are asked for.
// The shared features of a pair are added in the order in which `sparse_dot` adds them, to the same bits.
class CentroidIndex {
 public:
  CentroidIndex(std::int64_t n_features, std::int64_t n_labels, const std::int64_t* indptr,
                const std::int32_t* indices, const float* data)
      : start_(static_cast<std::size_t>(n_features) + 1), posting_(static_cast<std::size_t>(indptr[n_labels])) {
    for (std::int64_t p = 0; p < indptr[n_labels]; ++p) ++start_[static_cast<std::size_t>(indices[p]) + 1];
    for (std::size_t f = 1; f < start_.size(); ++f) start_[f] += start_[f - 1];
    std::vector<std::int64_t> next(start_.begin(), start_.end() - 1);
    for (std::int64_t l = 0; l < n_labels; ++l)
      for (std::int64_t p = indptr[l]; p < indptr[l + 1]; ++p)
        posting_[static_cast<std::size_t>(next[static_cast<std::size_t>(indices[p])]++)] = {static_cast<std::int32_t>(l), data[p]};
  }

  std::int64_t size(std::int32_t feature) const {
    return start_[static_cast<std::size_t>(feature) + 1] - start_[static_cast<std::size_t>(feature)];
  }

  // Adds x.c to each centroid's sum.
  void add(const SparseRow& x, double* sums) const {
    for (std::int64_t j = 0; j < x.size; ++j) {
      const auto f = static_cast<std::size_t>(x.index[j]);
      const double value = x.value[j];
      for (std::int64_t p = start_[f]; p < start_[f + 1]; ++p)
        sums[posting_[static_cast<std::size_t>(p)].label] += value * posting_[static_cast<std::size_t>(p)].value;
    }
  }

 private:
  struct Posting {
    std::int32_t label;
    float value;
  };
  std::vector<std::int64_t> start_;
  std::vector<Posting> posting_;
};

constexpr std::int64_t kPairsWorthAnIndex = 4;  // a centroid, on average

Array2<float> centroid_distances_sparse(std::int64_t n_features, In1<std::int64_t> c_indptr,
                                        In1<std::int32_t> c_indices, In1<float> c_data, In1<double> c_sq_norm,
                                        In1<std::uint8_t> known, double max_sq_norm, In1<std::int64_t> indptr,
                                        In1<std::int32_t> indices, In1<float> data, In1<std::int64_t> pair_indptr,
                                        In1<std::int32_t> pair_labels, int n_threads) {
  require(indptr.shape(0) >= 1 && c_indptr.shape(0) == known.shape(0) + 1 && c_sq_norm.shape(0) == known.shape(0),
          "centroids must have one row a label");
  require(indices.shape(0) == data.shape(0) && c_indices.shape(0) == c_data.shape(0),
          "indices and data must have the same length");
  const auto n_queries = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  const auto c_nnz = static_cast<std::int64_t>(c_data.shape(0));
  check_csr(n_queries, n_features, indptr.data(), static_cast<std::int64_t>(data.shape(0)), indices.data());
  const auto n_labels = static_cast<std::int64_t>(known.shape(0));
  check_pairs(pair_indptr, pair_labels, n_queries, n_labels);
  const auto m = static_cast<std::int64_t>(pair_labels.shape(0));
  std::vector<float> out(2 * static_cast<std::size_t>(m));
  {
    nb::gil_scoped_release release;
    std::unique_ptr<CentroidIndex> index;
    if (m >= kPairsWorthAnIndex * n_labels && n_labels > 0) {
      check_csr(n_labels, n_features, c_indptr.data(), c_nnz, c_indices.data());
      index = std::make_unique<CentroidIndex>(n_features, n_labels, c_indptr.data(), c_indices.data(), c_data.data());
    }
    std::vector<std::vector<double>> sums(static_cast<std::size_t>(std::max(1, n_threads)));
    std::vector<std::vector<double>> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
    parallel_for(n_queries, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int worker) {
      auto& spread = scratch[static_cast<std::size_t>(worker)];
      spread.resize(static_cast<std::size_t>(n_features));
      for (std::int64_t q = begin; q < end; ++q) {
        const SparseRow x{indices.data() + indptr.data()[q], data.data() + indptr.data()[q],
                          indptr.data()[q + 1] - indptr.data()[q]};
        const double sq_x = x.sq_norm();
        // What running over all postings, and clearing all sums, costs beside running down the pairs' centroids.
        std::int64_t of_postings = n_labels, of_pairs = 0;
        if (index) {
          for (std::int64_t j = 0; j < x.size; ++j) of_postings += index->size(x.index[j]);
          for (std::int64_t p = pair_indptr.data()[q]; p < pair_indptr.data()[q + 1]; ++p) {
            const std::int32_t label = pair_labels.data()[p];
            of_pairs += c_indptr.data()[label + 1] - c_indptr.data()[label];
          }
        }
        const bool at_once = of_postings < of_pairs;
        std::vector<double>& sum = sums[static_cast<std::size_t>(worker)];
        if (at_once) {
          sum.assign(static_cast<std::size_t>(n_labels), 0.0);
          index->add(x, sum.data());
        }
        for (std::int64_t j = 0; j < x.size; ++j) spread[static_cast<std::size_t>(x.index[j])] = x.value[j];
        for (std::int64_t p = pair_indptr.data()[q]; p < pair_indptr.data()[q + 1]; ++p) {
          const std::int32_t label = pair_labels.data()[p];
          double key = far_key(kL2, sq_x, 0.0, max_sq_norm, 0.0), cosine = 1.0;
          if (known.data()[label]) {
            const std::int64_t first = c_indptr.data()[label], last = c_indptr.data()[label + 1];
            require(0 <= first && first <= last && last <= c_nnz, "centroid rows must lie within their data");
            const SparseRow c{c_indices.data() + first, c_data.data() + first, last - first};
            const double product = at_once ? sum[static_cast<std::size_t>(label)] : sparse_dot(x, c, spread);
            const double sq_c = c_sq_norm.data()[label];
            key = std::max(0.0, sq_x + sq_c - 2.0 * product);
            cosine = cosine_distance(product, sq_x, sq_c);
          }
          out[static_cast<std::size_t>(p)] = distance_of(kL2, key);
          out[static_cast<std::size_t>(m + p)] = distance_of(kCosine, cosine);
        }
        for (std::int64_t j = 0; j < x.size; ++j) spread[static_cast<std::size_t>(x.index[j])] = 0.0;
      }
    });
  }
  return to_numpy(std::move(out), 2, static_cast<std::size_t>(m));
}

// Squared norms of CSR rows, features ascending, in double; the arrays are checked to be canonical.
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
  return to_numpy(std::move(sq));
}

}  // namespace

void bind_centroid(nb::module_& m) {
  m.def("label_means", &label_means, nb::arg("X").noconvert(), nb::arg("label_indptr").noconvert(),
        nb::arg("label_rows").noconvert(), nb::arg("n_threads"));
  m.def("centroid_distances_dense", &centroid_distances_dense, nb::arg("centroids").noconvert(),
        nb::arg("known").noconvert(), nb::arg("max_sq_norm"), nb::arg("Q").noconvert(),
        nb::arg("pair_indptr").noconvert(), nb::arg("pair_labels").noconvert(), nb::arg("n_threads"));
  m.def("centroid_distances_sparse", &centroid_distances_sparse, nb::arg("n_features"),
        nb::arg("c_indptr").noconvert(), nb::arg("c_indices").noconvert(), nb::arg("c_data").noconvert(),
        nb::arg("c_sq_norm").noconvert(), nb::arg("known").noconvert(), nb::arg("max_sq_norm"),
        nb::arg("indptr").noconvert(), nb::arg("indices").noconvert(), nb::arg("data").noconvert(),
        nb::arg("pair_indptr").noconvert(), nb::arg("pair_labels").noconvert(), nb::arg("n_threads"));
  m.def("csr_sq_norms", &csr_sq_norms, nb::arg("n_features"), nb::arg("indptr").noconvert(),
        nb::arg("indices").noconvert(), nb::arg("data").noconvert());
}

}  // namespace metarank
