#include "cuts.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "arrays.h"
#include "elementary.h"
#include "lists.h"

namespace metarank {

namespace {

constexpr std::int64_t kContext = 9;
// Distances within a list say no more beyond these.
constexpr double kFarGap = 5.0, kFarScore = 8.0;
// Relevant labels beyond those looked at one by one: the most that are counted, and the most expected.
constexpr std::int64_t kUnseen = 32;
constexpr double kMaxUnseen = 12.0;

// Positions of a list from the best score to the worst; ties go to the earlier pair.
void order_of_list(const double* s, std::int64_t n, std::vector<std::int64_t>& order) {
  order.resize(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::sort(order.begin(), order.end(),
            [s](std::int64_t a, std::int64_t b) { return s[a] != s[b] ? s[a] > s[b] : a < b; });
}

}  // namespace

Array1<std::int32_t> list_ranks(In1<double> scores, In1<std::int64_t> indptr) {
  const std::int64_t n = require_lists(indptr, scores.shape(0));
  require_finite(scores, "scores");
  std::vector<std::int32_t> out(scores.shape(0));
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t first = indptr(i), size = indptr(i + 1) - first;
    order_of_list(scores.data() + first, size, order);
    for (std::int64_t r = 0; r < size; ++r)
      out[static_cast<std::size_t>(first + order[static_cast<std::size_t>(r)])] = static_cast<std::int32_t>(r);
  }
  return to_array(std::move(out));
}

Array2<double> list_context(In1<double> scores, In1<std::int64_t> indptr) {
  const std::int64_t n = require_lists(indptr, scores.shape(0));
  require_finite(scores, "scores");
  std::vector<double> out(scores.shape(0) * kContext);
  std::vector<std::int64_t> order;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t first = indptr(i), size = indptr(i + 1) - first;
    const double* s = scores.data() + first;
    order_of_list(s, size, order);
    double expected = 0;
    for (std::int64_t j = 0; j < size; ++j) expected += elementary::logistic(s[j]);
    for (std::int64_t r = 0; r < size; ++r) {
      const std::int64_t j = order[static_cast<std::size_t>(r)];
      const double other = s[order[static_cast<std::size_t>(r == 0 && size > 1 ? 1 : 0)]];
      const double best_other = std::clamp(other, -kFarScore, kFarScore);
      double* x = out.data() + (first + j) * kContext;
      x[0] = 1.0;
      x[1] = s[j];
      x[2] = expected - elementary::logistic(s[j]);
      x[3] = elementary::log1p(static_cast<double>(r));
      x[4] = r == 0;
      x[5] = best_other;
      x[6] = s[j] - best_other;
      x[7] = r == 0 ? 0.0 : std::min(kFarGap, s[order[static_cast<std::size_t>(r - 1)]] - s[j]);
      x[8] = r + 1 == size ? 0.0 : std::min(kFarGap, s[j] - s[order[static_cast<std::size_t>(r + 1)]]);
    }
  }
  return to_array(std::move(out), scores.shape(0), static_cast<std::size_t>(kContext));
}

namespace {

// How many of the best labels of one list have the greatest expected F1, the labels being independent:
//   E F1(k) = sum_{a, b} 2 a / (k + a + b) Pr(a of the k best) Pr(b of the rest),   E F1(0) = Pr(none).
// `rest` counts the labels beyond the first `size`, as a Poisson variable of mean `unseen`.
std::int64_t best_size(const double* p, std::int64_t size, double unseen, bool allow_empty,
                       std::vector<double>& after, std::vector<double>& before) {
  const std::int64_t width = size + 1 + (unseen > 0 ? kUnseen : 0);
  after.assign(static_cast<std::size_t>((size + 1) * width), 0.0);  // after[j]: number of relevant among j, j+1, ...
  double* tail = after.data() + size * width;
  double term = elementary::exp(-unseen);
  for (std::int64_t b = 0; b < (unseen > 0 ? kUnseen : 1); ++b) {
    tail[b] = term;
    term *= unseen / static_cast<double>(b + 1);
  }
  for (std::int64_t j = size - 1; j >= 0; --j) {
    const double* next = after.data() + (j + 1) * width;
    double* here = after.data() + j * width;
    here[0] = next[0] * (1 - p[j]);
    for (std::int64_t b = 1; b < width; ++b) here[b] = next[b] * (1 - p[j]) + next[b - 1] * p[j];
  }
  before.assign(static_cast<std::size_t>(size + 1), 0.0);
  before[0] = 1.0;
  std::int64_t best = 0;
  double best_value = allow_empty ? after[0] : -1.0;
  for (std::int64_t k = 1; k <= size; ++k) {
    for (std::int64_t a = k; a >= 0; --a)
      before[static_cast<std::size_t>(a)] = before[static_cast<std::size_t>(a)] * (1 - p[k - 1]) +
                                            (a > 0 ? before[static_cast<std::size_t>(a - 1)] * p[k - 1] : 0.0);
    const double* rest = after.data() + k * width;
    double value = 0;
    for (std::int64_t a = 1; a <= k; ++a) {
      double sum = 0;
      for (std::int64_t b = 0; b < width - k; ++b) sum += rest[b] / static_cast<double>(k + a + b);
      value += 2.0 * static_cast<double>(a) * before[static_cast<std::size_t>(a)] * sum;
    }
    if (value > best_value) {
      best_value = value;
      best = k;
    }
  }
  return best;
}

}  // namespace

Array1<std::int64_t> expected_f1_sizes(In1<double> probabilities, In1<std::int64_t> indptr, double unseen,
                                       std::int64_t max_size, bool allow_empty) {
  const std::int64_t n = require_lists(indptr, probabilities.shape(0));
  for (std::size_t i = 0; i < probabilities.shape(0); ++i)
    require(probabilities(i) >= 0 && probabilities(i) <= 1, "probabilities must lie in [0, 1]");
  require(unseen >= 0, "unseen must be non-negative");
  require(max_size >= 1, "max_size must be positive");
  std::vector<std::int64_t> out(static_cast<std::size_t>(n));
  std::vector<double> p, after, before;
  for (std::int64_t i = 0; i < n; ++i) {
    p.assign(probabilities.data() + indptr(i), probabilities.data() + indptr(i + 1));
    std::sort(p.begin(), p.end(), std::greater<double>());
    const std::int64_t size = std::min(max_size, static_cast<std::int64_t>(p.size()));
    double rest = unseen;
    for (std::size_t j = static_cast<std::size_t>(size); j < p.size(); ++j) rest += p[j];
    out[static_cast<std::size_t>(i)] = best_size(p.data(), size, std::min(rest, kMaxUnseen), allow_empty, after, before);
  }
  return to_array(std::move(out));
}

}  // namespace metarank
