// Label vectors, eq. 3 of XReg: the unit vector along v_l = sum_i y_il x_i, sketched.
//
// Each feature is sent to one signed coordinate in each of `density` equal parts of an n_dims-vector
// (the sparse Johnson-Lindenstrauss transform of Kane and Nelson, 2014), which keeps the products of
// vectors up to errors of about 1 / sqrt(n_dims). A row costs `density` additions a non-zero, a label
// n_dims additions a point, and clustering never meets a sparse vector. Where the features are no more
// than n_dims, each keeps its own coordinate and nothing is lost.
#include <algorithm>
#include <cmath>

#include "bindings.h"
#include "pairs.h"
#include "rng.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlockRows = 2048;  // rows sketched at a time: n rows of n_dims are never stored
constexpr std::int64_t kSlice = 64;        // coordinates of all labels that one task adds up

// Entry j * density + b is 2 * coordinate + sign of feature j in part b.
std::vector<std::uint32_t> feature_coordinates(std::int64_t n_features, std::int64_t n_dims, std::int64_t density,
                                               std::uint64_t seed) {
  std::vector<std::uint32_t> at(static_cast<std::size_t>(n_features * density));
  const auto part = static_cast<std::uint64_t>(n_dims / density);
  for (std::size_t e = 0; e < at.size(); ++e) {
    const std::uint64_t h = hash_pair(seed, e);
    const std::uint64_t within = (h >> 32) * part >> 32;
    at[e] = static_cast<std::uint32_t>(2 * ((e % static_cast<std::size_t>(density)) * part + within) + (h & 1));
  }
  return at;
}

std::vector<std::uint32_t> own_coordinates(std::int64_t n_features) {
  std::vector<std::uint32_t> at(static_cast<std::size_t>(n_features));
  for (std::size_t j = 0; j < at.size(); ++j) at[j] = static_cast<std::uint32_t>(2 * j);
  return at;
}

// Largest absolute value, or 1: sums of values divided by it cannot overflow, and directions do not change.
float largest(const float* values, std::size_t n) {
  float m = 0.0f;
  for (std::size_t i = 0; i < n; ++i) m = std::max(m, std::fabs(values[i]));
  return m > 0.0f ? m : 1.0f;
}

METARANK_DISPATCH void add_scaled(const float* x, float a, std::int64_t d, float* sum) {
  for (std::int64_t j = 0; j < d; ++j) sum[j] += a * x[j];
}

void normalise(float* v, std::int64_t d) {
  double sq = 0.0;
  for (std::int64_t j = 0; j < d; ++j) sq += static_cast<double>(v[j]) * v[j];
  const double norm = std::sqrt(sq);
  for (std::int64_t j = 0; j < d && norm > 0.0; ++j) v[j] = static_cast<float>(v[j] / norm);
}

Array2<float> label_vectors(In1<std::int64_t> x_indptr, In1<std::int32_t> x_indices, In1<float> x_data,
                            std::int64_t n_features, In1<std::int64_t> y_indptr, In1<std::int32_t> y_indices,
                            In1<float> y_data, std::int64_t n_labels, std::int64_t n_dims, std::int64_t density,
                            std::uint64_t seed, int n_threads) {
  require(n_features >= 0 && n_labels >= 0, "n_features and n_labels must not be negative");
  require(n_dims >= 1 && n_dims <= 1 << 20, "n_dims must lie in [1, 2^20]");
  require(density >= 1 && n_dims % density == 0, "density must be positive and divide n_dims");
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features);
  const SparseRows Y = require_csr(y_indptr, y_indices, y_data, n_labels);
  require(x_indptr.shape(0) == y_indptr.shape(0), "X and Y must have the same number of rows");
  const auto n = static_cast<std::int64_t>(x_indptr.shape(0)) - 1;
  const bool exact = n_features <= n_dims;
  if (exact) {
    n_dims = n_features;
    density = 1;
  }
  std::vector<float> V(static_cast<std::size_t>(n_labels * n_dims));
  {
    nb::gil_scoped_release release;
    const auto at = exact ? own_coordinates(n_features) : feature_coordinates(n_features, n_dims, density, seed);
    const float x_unit = 1.0f / largest(X.data, x_data.shape(0)), y_unit = 1.0f / largest(Y.data, y_data.shape(0));
    std::vector<float> block(static_cast<std::size_t>(std::min(n, kBlockRows) * n_dims));
    for (std::int64_t first = 0; first < n; first += kBlockRows) {
      const std::int64_t rows = std::min(kBlockRows, n - first);
      parallel_for(rows, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
        std::fill(block.begin() + begin * n_dims, block.begin() + end * n_dims, 0.0f);
        for (std::int64_t i = begin; i < end; ++i) {
          float* row = block.data() + i * n_dims;
          for (std::int64_t p = X.indptr[first + i]; p < X.indptr[first + i + 1]; ++p) {
            const float x = X.data[p] * x_unit;
            const float signed_x[2] = {x, -x};
            const std::uint32_t* code = at.data() + X.indices[p] * density;
            for (std::int64_t b = 0; b < density; ++b) row[code[b] >> 1] += signed_x[code[b] & 1];
          }
        }
      });
      // A task owns its coordinates of every label: rows are added in ascending order whatever the threads.
      parallel_for(n_dims, n_threads, kSlice, [&](std::int64_t begin, std::int64_t end, int) {
        for (std::int64_t i = 0; i < rows; ++i)
          for (std::int64_t p = Y.indptr[first + i]; p < Y.indptr[first + i + 1]; ++p)
            add_scaled(block.data() + i * n_dims + begin, Y.data[p] * y_unit, end - begin,
                       V.data() + Y.indices[p] * n_dims + begin);
      });
    }
    parallel_for(n_labels, n_threads, 1024, [&](std::int64_t begin, std::int64_t end, int) {
      for (std::int64_t l = begin; l < end; ++l) normalise(V.data() + l * n_dims, n_dims);
    });
  }
  return to_numpy(std::move(V), static_cast<std::size_t>(n_labels), static_cast<std::size_t>(n_dims));
}

}  // namespace

void bind_label_vectors(nb::module_& m) {
  m.def("label_vectors", &label_vectors, nb::arg("x_indptr").noconvert(), nb::arg("x_indices").noconvert(),
        nb::arg("x_data").noconvert(), nb::arg("n_features"), nb::arg("y_indptr").noconvert(),
        nb::arg("y_indices").noconvert(), nb::arg("y_data").noconvert(), nb::arg("n_labels"), nb::arg("n_dims"),
        nb::arg("density"), nb::arg("seed"), nb::arg("n_threads"));
}

}  // namespace metarank
