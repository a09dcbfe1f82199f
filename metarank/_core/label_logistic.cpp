#include "candidate_lists.h"

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "arrays.h"
#include "elementary.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr int kMostSteps = 25;
constexpr double kTolerance = 1e-7;  // of the loss: what a last step gains
constexpr double kLeastLength = 1e-6;
constexpr double kLeastCurvature = 1e-9;
constexpr int64_t kBlock = 128;  // pairs whose losses are found before their terms are added

void require_label_model(const In2<double>& X, const In1<int32_t>& index, const In1<double>& shared,
                         const In2<double>& by_label) {
  require(shared.shape(0) == X.shape(1), "shared must have one entry a column of X");
  require(by_label.shape(1) <= X.shape(1), "by_label must not have more columns than X");
  require(index.shape(0) == X.shape(0), "index must have one entry a row of X");
  const auto k = static_cast<int64_t>(by_label.shape(0));
  for (size_t i = 0; i < index.shape(0); ++i)
    require(index(i) >= 0 && index(i) < k, "index must lie in [0, rows of by_label)");
}

METARANK_INLINE double label_score(const double* x, const double* shared, int64_t p, const double* label,
                                   int64_t q) {
  double s = 0;
  for (int64_t j = 0; j < q; ++j) s += x[j] * (shared[j] + label[j]);
  for (int64_t j = q; j < p; ++j) s += x[j] * shared[j];
  return s;
}

struct Pairs {
  const double* X;
  const int32_t* index;
  const double *target, *weight;
  int64_t m, p, q, k;
};

// The loss at some coefficients, its gradient, and the blocks of its Hessian that are not zero: of the first, which is
// symmetric, the lower triangle.
struct Terms {
  double loss = 0;
  std::vector<double> gradient, hessian, label_gradient, label_hessian;  // p, p x p, k x q, k x q x p
};

// Of the pairs alone, without the penalties. P and Q are p and q where they are known to the compiler, else -1.
template <int P, int Q>
METARANK_INLINE void add_pairs(const Pairs& pairs, const double* shared, const double* by_label, Terms& out) {
  const int64_t p = P >= 0 ? P : pairs.p, q = Q >= 0 ? Q : pairs.q;
  double own[P > 0 ? P * (P + 1) : 1] = {};  // the compiler sees that nothing else writes there
  double *gradient = P > 0 ? own : out.gradient.data(), *hessian = P > 0 ? own + p : out.hessian.data();
  double z[kBlock], e[kBlock], d[kBlock], w[kBlock];
  double loss = 0;
  for (int64_t first = 0; first < pairs.m; first += kBlock) {
    const int64_t size = std::min(kBlock, pairs.m - first);
    const double *target = pairs.target + first, *weight = pairs.weight + first;
    for (int64_t r = 0; r < size; ++r)
      z[r] = label_score(pairs.X + (first + r) * p, shared, p, by_label + pairs.index[first + r] * q, q);
    for (int64_t r = 0; r < size; ++r) e[r] = elementary::exp_down(std::fabs(z[r]));
    double odds = 1.0;  // their product takes one logarithm
    for (int64_t r = 0; r < size; ++r) {
      loss += weight[r] * ((z[r] > 0.0 ? z[r] : 0.0) - target[r] * z[r]);
      if (weight[r] == 1.0)
        odds *= 1.0 + e[r];
      else if (weight[r] != 0.0)
        loss += weight[r] * elementary::log1p(e[r]);
    }
    loss += elementary::log(odds);
    for (int64_t r = 0; r < size; ++r) {
      const double probability = (z[r] >= 0 ? 1.0 : e[r]) / (1.0 + e[r]), spread = probability * (1.0 - probability);
      d[r] = weight[r] * (probability - target[r]);
      w[r] = weight[r] * (spread > kLeastCurvature ? spread : kLeastCurvature);
    }
    for (int64_t r = 0; r < size; ++r) {
      if (w[r] == 0) continue;
      const double* x = pairs.X + (first + r) * p;
      const int64_t l = pairs.index[first + r];
      double *label_gradient = out.label_gradient.data() + l * q, *label_hessian = out.label_hessian.data() + l * q * p;
      for (int64_t a = 0; a < p; ++a) {
        const double dx = d[r] * x[a], wx = w[r] * x[a];
        gradient[a] += dx;
        for (int64_t b = 0; b + 1 < p; ++b) hessian[a * p + b] += wx * x[b];
        if (a + 1 == p) hessian[p * p - 1] += wx * x[a];
        if (a >= q) continue;
        label_gradient[a] += dx;
        for (int64_t b = 0; b < p; ++b) label_hessian[a * p + b] += wx * x[b];
      }
    }
  }
  if (P > 0) {
    std::copy(own, own + p, out.gradient.begin());
    std::copy(own + p, own + p * (p + 1), out.hessian.begin());
  }
  out.loss = loss;
}

METARANK_KERNEL void add_all_pairs(const Pairs& pairs, const double* shared, const double* by_label, Terms& out) {
  switch (pairs.p * 16 + pairs.q) {
    case 2 * 16: return add_pairs<2, 0>(pairs, shared, by_label, out);
    case 2 * 16 + 1: return add_pairs<2, 1>(pairs, shared, by_label, out);
    case 2 * 16 + 2: return add_pairs<2, 2>(pairs, shared, by_label, out);
    case 9 * 16 + 1: return add_pairs<9, 1>(pairs, shared, by_label, out);
    case 9 * 16 + 2: return add_pairs<9, 2>(pairs, shared, by_label, out);
    default: return add_pairs<-1, -1>(pairs, shared, by_label, out);
  }
}

// Cholesky's factor of a symmetric A (n, n), from its lower triangle and in its place.
METARANK_INLINE void factorise(double* A, int64_t n) {
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = 0; b <= a; ++b) {
      double s = A[a * n + b];
      for (int64_t c = 0; c < b; ++c) s -= A[a * n + c] * A[b * n + c];
      if (a == b)
        A[a * n + a] = std::sqrt(std::max(s, 1e-300));
      else
        A[a * n + b] = s / A[b * n + b];
    }
  }
}

// With L that factor, x becomes L^-1 x, then L'^-1 x.
METARANK_INLINE void forward(const double* A, int64_t n, double* x) {
  for (int64_t a = 0; a < n; ++a) {
    for (int64_t b = 0; b < a; ++b) x[a] -= A[a * n + b] * x[b];
    x[a] /= A[a * n + a];
  }
}
METARANK_INLINE void backward(const double* A, int64_t n, double* x) {
  for (int64_t a = n - 1; a >= 0; --a) {
    for (int64_t b = a + 1; b < n; ++b) x[a] -= A[b * n + a] * x[b];
    x[a] /= A[a * n + a];
  }
}

// Labels leave the shared terms: with L L' the block of one, the rows of `cross` and its gradient become L^-1 of them.
template <int P, int Q>
METARANK_INLINE void eliminate(int64_t k, int64_t p_any, int64_t q_any, double label_ridge,
                               double* block, double* cross, double* label_step, double* step, double* hessian) {
  const int64_t p = P >= 0 ? P : p_any, q = Q >= 0 ? Q : q_any;
  for (int64_t l = 0; l < k; ++l, block += q * q, cross += q * p, label_step += q) {
    for (int64_t a = 0; a < q; ++a)
      for (int64_t b = 0; b < q; ++b) block[a * q + b] = cross[a * p + b] + (a == b ? label_ridge : 0.0);
    factorise(block, q);
    forward(block, q, label_step);
    for (int64_t a = 0; a < q; ++a) {
      double* row = cross + a * p;
      for (int64_t b = 0; b < a; ++b)
        for (int64_t j = 0; j < p; ++j) row[j] -= block[a * q + b] * cross[b * p + j];
      for (int64_t j = 0; j < p; ++j) row[j] /= block[a * q + a];
      for (int64_t i = 0; i < p; ++i) {
        step[i] -= row[i] * label_step[a];
        for (int64_t j = 0; j <= i; ++j) hessian[i * p + j] -= row[i] * row[j];
      }
    }
  }
}

METARANK_KERNEL void eliminate_all(int64_t k, int64_t p, int64_t q, double label_ridge, double* block,
                                   double* cross, double* label_step, double* step, double* hessian) {
  switch (p * 16 + q) {
    case 2 * 16 + 1: return eliminate<2, 1>(k, p, q, label_ridge, block, cross, label_step, step, hessian);
    case 2 * 16 + 2: return eliminate<2, 2>(k, p, q, label_ridge, block, cross, label_step, step, hessian);
    case 9 * 16 + 1: return eliminate<9, 1>(k, p, q, label_ridge, block, cross, label_step, step, hessian);
    case 9 * 16 + 2: return eliminate<9, 2>(k, p, q, label_ridge, block, cross, label_step, step, hessian);
    default: return eliminate<-1, -1>(k, p, q, label_ridge, block, cross, label_step, step, hessian);
  }
}

class Newton {
 public:
  Newton(const Pairs& pairs, const double* ridge, double label_ridge)
      : pairs_(pairs), ridge_(ridge), label_ridge_(label_ridge) {}

  // The penalised loss and its terms.
  void evaluate(const std::vector<double>& shared, const std::vector<double>& by_label, Terms& out) const {
    const auto p = static_cast<size_t>(pairs_.p), kq = static_cast<size_t>(pairs_.k * pairs_.q);
    out.gradient.assign(p, 0.0);
    out.hessian.assign(p * p, 0.0);
    out.label_gradient.assign(kq, 0.0);
    out.label_hessian.assign(kq * p, 0.0);
    by_level<add_all_pairs>(pairs_, shared.data(), by_label.data(), out);
    for (size_t a = 0; a < p; ++a) {
      out.loss += 0.5 * ridge_[a] * shared[a] * shared[a];
      out.gradient[a] += ridge_[a] * shared[a];
      out.hessian[a * p + a] += ridge_[a];
    }
    double squares = 0;
    for (size_t j = 0; j < kq; ++j) {
      squares += by_label[j] * by_label[j];
      out.label_gradient[j] += label_ridge_ * by_label[j];
    }
    out.loss += 0.5 * label_ridge_ * squares;
  }

  // The step down from there; what it would gain if the loss were the parabola of its terms. Spoils the terms.
  double find_step(Terms& at, std::vector<double>& step, std::vector<double>& label_step) const {
    const int64_t p = pairs_.p, q = pairs_.q;
    step = at.gradient;
    label_step = at.label_gradient;
    block_.resize(static_cast<size_t>(pairs_.k * q * q));
    by_level<eliminate_all>(pairs_.k, p, q, label_ridge_, block_.data(), at.label_hessian.data(), label_step.data(),
                            step.data(), at.hessian.data());
    factorise(at.hessian.data(), p);
    forward(at.hessian.data(), p, step.data());
    backward(at.hessian.data(), p, step.data());
    for (int64_t l = 0; l < pairs_.k; ++l) {
      double* own = label_step.data() + l * q;
      const double* cross = at.label_hessian.data() + l * q * p;
      for (int64_t a = 0; a < q; ++a)
        for (int64_t b = 0; b < p; ++b) own[a] -= cross[a * p + b] * step[b];
      backward(block_.data() + l * q * q, q, own);
    }
    double gain = 0;
    for (size_t a = 0; a < step.size(); ++a) gain += at.gradient[a] * step[a];
    for (size_t j = 0; j < label_step.size(); ++j) gain += at.label_gradient[j] * label_step[j];
    return 0.5 * gain;
  }

 private:
  Pairs pairs_;
  const double* ridge_;
  double label_ridge_;
  mutable std::vector<double> block_;
};

std::vector<double> moved(const std::vector<double>& x, double length, const std::vector<double>& step) {
  std::vector<double> out(x.size());
  for (size_t j = 0; j < x.size(); ++j) out[j] = x[j] - length * step[j];
  return out;
}

}  // namespace

Array1<double> label_logistic_scores(In2<double> X, In1<int32_t> index, In1<double> shared,
                                     In2<double> by_label) {
  require_label_model(X, index, shared, by_label);
  const auto m = static_cast<int64_t>(X.shape(0)), p = static_cast<int64_t>(X.shape(1)),
             q = static_cast<int64_t>(by_label.shape(1));
  std::vector<double> out(X.shape(0));
  for (int64_t i = 0; i < m; ++i)
    out[i] =
        label_score(X.data() + i * p, shared.data(), p, by_label.data() + index.data()[i] * q, q);
  return to_array(std::move(out));
}

std::tuple<Array1<double>, Array2<double>> fit_label_logistic(In2<double> X, In1<int32_t> index,
                                                              In1<double> target, In1<double> weight,
                                                              In1<double> start, In2<double> label_start,
                                                              In1<double> ridge, double label_ridge) {
  require_label_model(X, index, start, label_start);
  require(target.shape(0) == X.shape(0), "target must have one entry a row of X");
  require(weight.shape(0) == X.shape(0), "weight must have one entry a row of X");
  require(ridge.shape(0) == X.shape(1), "ridge must have one entry a column of X");
  require(label_ridge > 0.0 || label_start.shape(1) == 0, "label_ridge must be positive");
  const Pairs pairs{X.data(), index.data(), target.data(), weight.data(), static_cast<int64_t>(X.shape(0)),
                    static_cast<int64_t>(X.shape(1)), static_cast<int64_t>(label_start.shape(1)),
                    static_cast<int64_t>(label_start.shape(0))};
  const Newton newton(pairs, ridge.data(), label_ridge);
  std::vector<double> shared(start.data(), start.data() + start.size()),
      by_label(label_start.data(), label_start.data() + label_start.size()), step, label_step;
  Terms at, next;
  newton.evaluate(shared, by_label, at);
  for (int round = 0; round < kMostSteps; ++round) {
    const double promised = newton.find_step(at, step, label_step);
    if (std::fabs(promised) < kTolerance * std::fabs(at.loss)) {
      // So near the minimum the loss is a parabola: another look at all pairs would only confirm the step.
      shared = moved(shared, 1.0, step);
      by_label = moved(by_label, 1.0, label_step);
      break;
    }
    bool lower = false;
    for (double length = 1.0; !lower && length > kLeastLength; length /= 2) {
      auto there = moved(shared, length, step);
      auto labels_there = moved(by_label, length, label_step);
      newton.evaluate(there, labels_there, next);
      lower = next.loss <= at.loss;
      if (lower) {
        shared = std::move(there);
        by_label = std::move(labels_there);
      }
    }
    if (!lower) break;
    const double gained = at.loss - next.loss;
    std::swap(at, next);
    if (gained < kTolerance * std::fabs(at.loss)) break;
  }
  const size_t k = label_start.shape(0), q = label_start.shape(1);
  return {to_array(std::move(shared)), to_array(std::move(by_label), k, q)};
}

}  // namespace metarank
