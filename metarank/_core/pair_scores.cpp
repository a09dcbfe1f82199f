#include "pair_scores.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "arrays.h"
#include "parallel.h"
#include "lists.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr std::int64_t kDoubleLanes = 8;
// Rows a partial sum covers: part of the definition of the sum, not of the schedule.
constexpr std::int64_t kRowBlock = 2048;

// sum_j (x_j - mean_j) w_j in one fixed order.
METARANK_INLINE double centred_dot(const float* x, const double* mean, const double* w, std::int64_t d) {
  double s[kDoubleLanes] = {0};
  std::int64_t j = 0;
  for (; j + kDoubleLanes <= d; j += kDoubleLanes)
    for (std::int64_t i = 0; i < kDoubleLanes; ++i) s[i] += (x[j + i] - mean[j + i]) * w[j + i];
  for (std::int64_t i = 0; j < d; ++j, ++i) s[i] += (x[j] - mean[j]) * w[j];
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

METARANK_KERNEL void score_rows(const float* x, const double* mean, const double* w, double bias, std::int64_t d,
                                std::int64_t begin, std::int64_t end, double* out) {
  for (std::int64_t i = begin; i < end; ++i) out[i] = bias + centred_dot(x + i * d, mean, w, d);
}

METARANK_KERNEL void add_rows(const float* x, const double* mean, const double* g, std::int64_t d,
                              std::int64_t begin, std::int64_t end, double* sum) {
  for (std::int64_t i = begin; i < end; ++i)
    for (std::int64_t j = 0; j < d; ++j) sum[j] += g[i] * (x[i * d + j] - mean[j]);
}

}  // namespace

Array1<double> linear_scores(In2<float> values, In1<double> mean, In1<double> weights, double bias, int n_threads) {
  const auto m = static_cast<std::int64_t>(values.shape(0)), d = static_cast<std::int64_t>(values.shape(1));
  require(mean.shape(0) == values.shape(1), "mean must have one entry a column of values");
  require(weights.shape(0) == values.shape(1), "weights must have one entry a column of values");
  std::vector<double> out(static_cast<std::size_t>(m));
  parallel_for(m, n_threads, kRowBlock, [&](std::int64_t begin, std::int64_t end, int) {
    by_level<score_rows>(values.data(), mean.data(), weights.data(), bias, d, begin, end, out.data());
  });
  return to_array(std::move(out));
}

namespace {

// Each pair by the weights of its own label.
METARANK_KERNEL void score_label_rows(const float* x, const std::int32_t* label, const double* mean,
                                      const double* weights, const double* bias, std::int64_t d, std::int64_t begin,
                                      std::int64_t end, double* out) {
  for (std::int64_t i = begin; i < end; ++i)
    out[i] = bias[label[i]] + centred_dot(x + i * d, mean, weights + label[i] * d, d);
}

}  // namespace

Array1<double> label_linear_scores(In2<float> values, In1<std::int32_t> labels, In1<double> mean, In2<double> weights,
                                   In1<double> bias, int n_threads) {
  const auto m = static_cast<std::int64_t>(values.shape(0)), d = static_cast<std::int64_t>(values.shape(1));
  require(mean.shape(0) == values.shape(1), "mean must have one entry a column of values");
  require(weights.shape(1) == values.shape(1), "weights must have one column a column of values");
  require(bias.shape(0) == weights.shape(0), "bias must have one entry a row of weights");
  require(labels.shape(0) == values.shape(0), "labels must have one entry a row of values");
  const auto n_labels = static_cast<std::int64_t>(weights.shape(0));
  for (std::size_t i = 0; i < labels.shape(0); ++i)
    require(labels(i) >= 0 && labels(i) < n_labels, "labels must lie in [0, number of rows of weights)");
  std::vector<double> out(static_cast<std::size_t>(m));
  parallel_for(m, n_threads, kRowBlock, [&](std::int64_t begin, std::int64_t end, int) {
    by_level<score_label_rows>(values.data(), labels.data(), mean.data(), weights.data(), bias.data(), d, begin, end,
                               out.data());
  });
  return to_array(std::move(out));
}

Array1<double> linear_gradient(In2<float> values, In1<double> mean, In1<double> g, int n_threads) {
  const auto m = static_cast<std::int64_t>(values.shape(0)), d = static_cast<std::int64_t>(values.shape(1));
  require(mean.shape(0) == values.shape(1), "mean must have one entry a column of values");
  require(g.shape(0) == values.shape(0), "g must have one entry a row of values");
  std::vector<double> out(static_cast<std::size_t>(d), 0.0);
  const std::int64_t n_blocks = (m + kRowBlock - 1) / kRowBlock;
  std::vector<double> partial(static_cast<std::size_t>(n_blocks * d), 0.0);
  parallel_for(n_blocks, n_threads, 1, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t b = begin; b < end; ++b)
      by_level<add_rows>(values.data(), mean.data(), g.data(), d, b * kRowBlock, std::min(m, (b + 1) * kRowBlock),
                         partial.data() + b * d);
  });
  for (std::int64_t b = 0; b < n_blocks; ++b)
    for (std::int64_t j = 0; j < d; ++j)
      out[static_cast<std::size_t>(j)] += partial[static_cast<std::size_t>(b * d + j)];
  return to_array(std::move(out));
}

namespace {

// Average precision, nDCG and RankLoss of one list; tied scores count against
// AP, half in RankLoss, and go to the earlier pair in nDCG.
void quality_of_list(const double* s, const float* gain, std::int64_t n, std::vector<std::int64_t>& order,
                     std::vector<float>& ideal, double* out) {
  order.resize(static_cast<std::size_t>(n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  std::sort(order.begin(), order.end(),
            [s](std::int64_t a, std::int64_t b) { return s[a] != s[b] ? s[a] > s[b] : a < b; });
  ideal.assign(gain, gain + n);
  std::sort(ideal.begin(), ideal.end(), std::greater<float>());

  double precision = 0, misordered = 0, dcg = 0, best = 0, relevant = 0, irrelevant = 0;
  for (std::int64_t begin = 0, end = 0; begin < n; begin = end) {  // groups of equal scores
    double hits = 0;
    for (; end < n && s[order[end]] == s[order[begin]]; ++end) {
      const double discount = 1.0 / std::log2(static_cast<double>(end) + 2.0);
      hits += gain[order[end]] > 0;
      dcg += gain[order[end]] * discount;
      best += ideal[static_cast<std::size_t>(end)] * discount;
    }
    const double misses = static_cast<double>(end - begin) - hits;
    relevant += hits;
    precision += hits * relevant / static_cast<double>(end);
    misordered += hits * (irrelevant + 0.5 * misses);
    irrelevant += misses;
  }
  out[0] = precision / relevant;
  out[1] = dcg / best;
  out[2] = irrelevant > 0 ? misordered / (relevant * irrelevant) : 0.0;
}

}  // namespace

Array2<double> list_quality(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, int n_threads) {
  const std::int64_t n = require_lists(indptr, scores.shape(0));
  require(gains.shape(0) == scores.shape(0), "gains must have one entry a score");
  require_finite(scores, "scores");
  require_finite(gains, "gains");
  std::vector<double> out(static_cast<std::size_t>(n * 3), std::numeric_limits<double>::quiet_NaN());
  parallel_for(n, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<std::int64_t> order;
    std::vector<float> ideal;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = indptr(i), size = indptr(i + 1) - first;
      const float* gain = gains.data() + first;
      if (std::any_of(gain, gain + size, [](float g) { return g > 0; }))
        quality_of_list(scores.data() + first, gain, size, order, ideal, out.data() + i * 3);
    }
  });
  return to_array(std::move(out), static_cast<std::size_t>(n), 3);
}

}  // namespace metarank
