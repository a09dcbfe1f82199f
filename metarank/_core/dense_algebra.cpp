#include "rows.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "parallel.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr int64_t kBlock = 16;  // rows of the result to a task of a thread

METARANK_KERNEL void times_rows(const double* A, int64_t n, int64_t d, const double* x, double* out) {
  for (int64_t i = 0; i < n; ++i) out[i] = dot(A + i * d, x, d);
}

METARANK_KERNEL void add_rows(const double* A, int64_t n, int64_t d, const double* v, double* out) {
  for (int64_t i = 0; i < n; ++i) add_scaled(out, v[i], A + i * d, d);
}

// Rows [begin, end) of the upper triangle. Four rows of A at once: a sum is loaded and stored a quarter as often.
METARANK_KERNEL void gram_rows(const double* A, const double* weight, int64_t n, int64_t d,
                               int64_t begin, int64_t end, double* out) {
  int64_t i = 0;
  for (; i + 4 <= n; i += 4) {
    const double *a0 = A + i * d, *a1 = a0 + d, *a2 = a1 + d, *a3 = a2 + d;
    for (int64_t j = begin; j < end; ++j) {
      const double f0 = weight[i] * a0[j], f1 = weight[i + 1] * a1[j], f2 = weight[i + 2] * a2[j],
                   f3 = weight[i + 3] * a3[j];
      double* sums = out + j * d;
      for (int64_t k = j; k < d; ++k) sums[k] += (f0 * a0[k] + f1 * a1[k]) + (f2 * a2[k] + f3 * a3[k]);
    }
  }
  for (; i < n; ++i) {
    const double* a = A + i * d;
    for (int64_t j = begin; j < end; ++j) {
      const double f = weight[i] * a[j];
      double* sums = out + j * d;
      for (int64_t k = j; k < d; ++k) sums[k] += f * a[k];
    }
  }
}

// A row of R takes its share out of all rows below it.
METARANK_KERNEL bool factor_in_place(double* R, int64_t d) {
  for (int64_t j = 0; j < d; ++j) {
    double* row = R + j * d;
    if (!(row[j] > 0) || std::isinf(row[j])) return false;
    const double root = std::sqrt(row[j]);
    for (int64_t k = j; k < d; ++k) row[k] /= root;
    for (int64_t i = j + 1; i < d; ++i) {
      const double f = row[i];
      double* below = R + i * d;
      for (int64_t k = i; k < d; ++k) below[k] -= f * row[k];
    }
  }
  return true;
}

int64_t square(const In2<double>& M) {
  require(M.shape(0) == M.shape(1), "a matrix must be square");
  return static_cast<int64_t>(M.shape(0));
}

}  // namespace

Array2<double> weighted_gram(const In2<double>& A, const In1<double>& weight, int n_threads) {
  const auto n = static_cast<int64_t>(A.shape(0)), d = static_cast<int64_t>(A.shape(1));
  require(weight.size() == A.shape(0), "weight must have one entry a row of A");
  std::vector<double> out(static_cast<size_t>(d * d), 0.0);
  parallel_for(d, n_threads, kBlock, [&](int64_t begin, int64_t end, int) {
    by_level<gram_rows>(A.data(), weight.data(), n, d, begin, end, out.data());
  });
  for (int64_t j = 0; j < d; ++j)
    for (int64_t k = 0; k < j; ++k) out[j * d + k] = out[k * d + j];
  return to_array(std::move(out), static_cast<size_t>(d), static_cast<size_t>(d));
}

Array1<double> times(const In2<double>& A, const In1<double>& x) {
  require(x.size() == A.shape(1), "x must have one entry a column of A");
  std::vector<double> out(A.shape(0));
  by_level<times_rows>(A.data(), static_cast<int64_t>(A.shape(0)), static_cast<int64_t>(A.shape(1)), x.data(),
                       out.data());
  return to_array(std::move(out));
}

Array1<double> transposed_times(const In2<double>& A, const In1<double>& v) {
  require(v.size() == A.shape(0), "v must have one entry a row of A");
  std::vector<double> out(A.shape(1), 0.0);
  by_level<add_rows>(A.data(), static_cast<int64_t>(A.shape(0)), static_cast<int64_t>(A.shape(1)), v.data(),
                     out.data());
  return to_array(std::move(out));
}

double inner_product(const In1<double>& a, const In1<double>& b) {
  require(a.size() == b.size(), "vectors must be of one length");
  return by_level<dot<double>>(a.data(), b.data(), static_cast<int64_t>(a.size()));
}

Array2<double> upper_factor(const In2<double>& M) {
  const int64_t d = square(M);
  std::vector<double> out(M.data(), M.data() + M.size());
  require(by_level<factor_in_place>(out.data(), d), "a matrix must be positive definite");
  for (int64_t j = 0; j < d; ++j) std::fill_n(out.begin() + j * d, j, 0.0);
  return to_array(std::move(out), M.shape(0), M.shape(1));
}

Array1<double> solve_upper(const In2<double>& R, const In1<double>& b, bool transposed) {
  const int64_t d = square(R);
  require(b.size() == R.shape(0), "b must have one entry a row of R");
  std::vector<double> x(b.data(), b.data() + b.size());
  if (transposed) {
    for (int64_t j = 0; j < d; ++j) {
      const double* row = R.data() + j * d;
      x[j] /= row[j];
      by_level<add_scaled<double, double>>(x.data() + j + 1, -x[j], row + j + 1, d - j - 1);
    }
  } else {
    for (int64_t j = d - 1; j >= 0; --j) {
      const double* row = R.data() + j * d;
      x[j] -= by_level<dot<double>>(row + j + 1, x.data() + j + 1, d - j - 1);
      x[j] /= row[j];
    }
  }
  return to_array(std::move(x));
}

}  // namespace metarank
