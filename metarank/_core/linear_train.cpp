// One label at a time, duals and gradients in double, each row drawn by a hash of its own: not the descent of
// linear_lanes.h, whose sixteen labels of floats share the order of the rows. One for both would change the weights.
#include "linear_train.h"

#include <limits>
#include <numeric>

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"
#include "rng.h"
#include "simd.h"

namespace metarank {

namespace {

struct DenseX {
  const float* data;
  std::int64_t d;
  float dot_with(std::int64_t i, const float* w) const;
  void add_to(std::int64_t i, float a, float* w) const;
};

METARANK_KERNEL float dense_dot(const float* x, const float* w, std::int64_t d) { return dot(x, w, d); }

METARANK_KERNEL void dense_add(const float* x, float a, std::int64_t d, float* w) {
  for (std::int64_t j = 0; j < d; ++j) w[j] += a * x[j];
}

inline float DenseX::dot_with(std::int64_t i, const float* w) const { return by_level<dense_dot>(data + i * d, w, d); }
inline void DenseX::add_to(std::int64_t i, float a, float* w) const { by_level<dense_add>(data + i * d, a, d, w); }

struct SparseX {
  SparseRows rows;
  float dot_with(std::int64_t i, const float* w) const {
    float s = 0.0f;
    for (std::int64_t p = rows.indptr[i]; p < rows.indptr[i + 1]; ++p) s += rows.data[p] * w[rows.indices[p]];
    return s;
  }
  void add_to(std::int64_t i, float a, float* w) const {
    for (std::int64_t p = rows.indptr[i]; p < rows.indptr[i + 1]; ++p) w[rows.indices[p]] += a * rows.data[p];
  }
};

struct Svm {
  double C, tolerance;
  int max_epochs;
};

// Weights w (d,) and returned bias of one label.
template <typename Rows>
float train_label(const Rows& X, const std::vector<double>& sq_norm, const std::vector<signed char>& y,
                  const Svm& svm, std::uint64_t seed, float* w) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  const auto n = static_cast<std::int64_t>(y.size());
  std::vector<std::int64_t> order(y.size());
  std::iota(order.begin(), order.end(), 0);
  std::vector<double> alpha(y.size(), 0.0);
  const double diagonal = 0.5 / svm.C;
  float bias = 0.0f;
  std::int64_t active = n;
  double upper = kInfinity;  // gradients above it let a row at alpha = 0 rest
  std::uint64_t draw = 0;
  for (int epoch = 0; epoch < svm.max_epochs; ++epoch) {
    double largest = -kInfinity, smallest = kInfinity;
    for (std::int64_t s = 0; s < active; ++s) {
      const auto pick = s + static_cast<std::int64_t>(hash_pair(seed, draw++) % static_cast<std::uint64_t>(active - s));
      std::swap(order[static_cast<std::size_t>(s)], order[static_cast<std::size_t>(pick)]);
      const std::int64_t i = order[static_cast<std::size_t>(s)];
      const auto at = static_cast<std::size_t>(i);
      const double sign = y[at];
      const double gradient = sign * (X.dot_with(i, w) + bias) - 1.0 + diagonal * alpha[at];
      double projected = gradient;
      if (alpha[at] == 0.0) {
        if (gradient > upper) {
          std::swap(order[static_cast<std::size_t>(s)], order[static_cast<std::size_t>(--active)]);
          --s;
          continue;
        }
        projected = std::min(gradient, 0.0);
      }
      largest = std::max(largest, projected);
      smallest = std::min(smallest, projected);
      if (std::fabs(projected) < 1e-12) continue;
      const double old = alpha[at];
      alpha[at] = std::max(0.0, old - gradient / (sq_norm[at] + 1.0 + diagonal));
      const auto step = static_cast<float>((alpha[at] - old) * sign);
      X.add_to(i, step, w);
      bias += step;
    }
    if (largest - smallest <= svm.tolerance) {
      if (active == n) break;
      active = n;  // look once more at the rows at rest
      upper = kInfinity;
    } else {
      upper = largest > 0.0 ? largest : kInfinity;
    }
  }
  return bias;
}

// W (L, d) and bias (L,) from relevant rows by label.
template <typename Rows>
std::tuple<Array2<float>, Array1<float>> train(const Rows& X, std::int64_t n, std::int64_t d,
                                               const In1<std::int64_t>& label_indptr,
                                               const In1<std::int32_t>& label_rows, const Svm& svm,
                                               std::uint64_t seed, int n_threads) {
  require(svm.C > 0.0 && std::isfinite(svm.C), "C must be positive and finite");
  require(label_indptr.shape(0) >= 1, "label_indptr must have at least one entry");
  const auto L = static_cast<std::int64_t>(label_indptr.shape(0)) - 1;
  require_pairs(label_indptr, label_rows, L, n);
  std::vector<float> W(static_cast<std::size_t>(L * d), 0.0f), bias(static_cast<std::size_t>(L));
  std::vector<double> sq_norm(static_cast<std::size_t>(n));
  std::vector<float> row(static_cast<std::size_t>(d), 0.0f);
  for (std::int64_t i = 0; i < n; ++i) {
    X.add_to(i, 1.0f, row.data());
    sq_norm[static_cast<std::size_t>(i)] = static_cast<double>(X.dot_with(i, row.data()));
    X.add_to(i, -1.0f, row.data());
  }
  parallel_for(L, n_threads, 1, [&](std::int64_t l, std::int64_t, int) {
    std::vector<signed char> y(static_cast<std::size_t>(n), -1);
    for (std::int64_t p = label_indptr.data()[l]; p < label_indptr.data()[l + 1]; ++p)
      y[static_cast<std::size_t>(label_rows.data()[p])] = 1;
    bias[static_cast<std::size_t>(l)] =
        train_label(X, sq_norm, y, svm, hash_pair(seed, static_cast<std::uint64_t>(l)), W.data() + l * d);
  });
  return std::make_tuple(to_array(std::move(W), static_cast<std::size_t>(L), static_cast<std::size_t>(d)),
                        to_array(std::move(bias)));
}

}  // namespace

std::tuple<Array2<float>, Array1<float>> train_svm_dense(const In2<float>& X, const In1<std::int64_t>& label_indptr,
                                                         const In1<std::int32_t>& label_rows, double C,
                                                         double tolerance, int max_epochs, std::uint64_t seed,
                                                         int n_threads) {
  const auto d = static_cast<std::int64_t>(X.shape(1));
  return train(DenseX{X.data(), d}, static_cast<std::int64_t>(X.shape(0)), d, label_indptr, label_rows,
               {C, tolerance, max_epochs}, seed, n_threads);
}

std::tuple<Array2<float>, Array1<float>> train_svm_sparse(const In1<std::int64_t>& x_indptr,
                                                          const In1<std::int32_t>& x_indices,
                                                          const In1<float>& x_data, std::int64_t n_features,
                                                          const In1<std::int64_t>& label_indptr,
                                                          const In1<std::int32_t>& label_rows, double C,
                                                          double tolerance, int max_epochs, std::uint64_t seed,
                                                          int n_threads) {
  require(n_features >= 0, "n_features must be non-negative");
  const SparseRows X = require_csr(x_indptr, x_indices, x_data, n_features);
  return train(SparseX{X}, static_cast<std::int64_t>(x_indptr.shape(0)) - 1, n_features, label_indptr, label_rows,
               {C, tolerance, max_epochs}, seed, n_threads);
}

}  // namespace metarank
