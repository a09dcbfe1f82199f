#include "two_sided.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <utility>
#include <vector>

#include "block_scores.h"
#include "elementary.h"
#include "parallel.h"
#include "rng.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr float kTiny = 1e-12f;
constexpr float kAdamFirst = 0.9f, kAdamSecond = 0.999f, kAdamTiny = 1e-8f;
constexpr float kScaleRate = 1e-2f;
constexpr float kLeastGradient = 1e-3f;  // of a loss by a score: what less would change is not worth the time
constexpr int64_t kTogether = 4, kColumns = 32;  // of a product, whose sums stay in registers

// x to unit length; its length before. Zeros stay.
METARANK_INLINE float normalise(float* x, int64_t d) {
  const float length = std::sqrt(dot(x, x, d));
  for (int64_t j = 0; j < d; ++j) x[j] /= std::max(length, kTiny);
  return length;
}

// The gradient at x of what has the gradient g at the unit vector u = x / length, in place.
METARANK_INLINE void through_length(float* g, const float* u, float length, int64_t d) {
  add_scaled(g, -dot(g, u, d), u, d);
  for (int64_t j = 0; j < d; ++j) g[j] /= std::max(length, kTiny);
}

// out (R, C) = A B, of which A (R, n) has its own steps from row to row and from column to column.
template <int R, int C>
METARANK_INLINE void tile(const float* A, int64_t row_step, int64_t column_step, int64_t n, const float* B, int64_t d,
                          float* out) {
  float s[R][C] = {{0}};
  for (int64_t k = 0; k < n; ++k)
    for (int r = 0; r < R; ++r)
      for (int c = 0; c < C; ++c) s[r][c] += A[r * row_step + k * column_step] * B[k * d + c];
  for (int r = 0; r < R; ++r) std::copy_n(s[r], C, out + r * d);
}

template <int R>
METARANK_INLINE void tiles(const float* A, int64_t row_step, int64_t column_step, int64_t n, const float* B, int64_t d,
                           float* out) {
  int64_t c = 0;
  for (; c + kColumns <= d; c += kColumns) tile<R, kColumns>(A, row_step, column_step, n, B + c, d, out + c);
  for (; c < d; ++c) tile<R, 1>(A, row_step, column_step, n, B + c, d, out + c);
}

// As `tile`, of m rows of A and d columns of B.
METARANK_KERNEL void product(const float* A, int64_t row_step, int64_t column_step, int64_t m, int64_t n,
                             const float* B, int64_t d, float* out) {
  int64_t r = 0;
  for (; r + kTogether <= m; r += kTogether)
    tiles<kTogether>(A + r * row_step, row_step, column_step, n, B, d, out + r * d);
  for (; r < m; ++r) tiles<1>(A + r * row_step, row_step, column_step, n, B, d, out + r * d);
}

METARANK_KERNEL float to_unit(float* x, int64_t d) { return normalise(x, d); }

// As `dot`, of several vectors at once: their sums do not wait for each other.
template <int n>
METARANK_INLINE void dots(const float* a, const float* const* b, int64_t d, float* out) {
  float s[n][kLanes] = {{0}};
  int64_t j = 0;
  for (; j + kLanes <= d; j += kLanes)
    for (int t = 0; t < n; ++t)
      for (int i = 0; i < kLanes; ++i) s[t][i] += a[j + i] * b[t][j + i];
  for (int i = 0; j < d; ++j, ++i)
    for (int t = 0; t < n; ++t) s[t][i] += a[j] * b[t][j];
  for (int t = 0; t < n; ++t) out[t] = fold_lanes(s[t]);
}

// Scores of a query with some labels; and what the labels, each by its factor, add up to.
METARANK_KERNEL void cosines(const float* q, const float* U, const int32_t* labels, int64_t m, int64_t d, float* out) {
  int64_t c = 0;
  for (; c + kTogether <= m; c += kTogether) {
    const float* u[kTogether];
    for (int64_t t = 0; t < kTogether; ++t) u[t] = U + static_cast<int64_t>(labels[c + t]) * d;
    dots<kTogether>(q, u, d, out + c);
  }
  for (; c < m; ++c) out[c] = dot(q, U + static_cast<int64_t>(labels[c]) * d, d);
}

METARANK_KERNEL void row_gradient(const float* q, float length, const float* U, const int32_t* labels,
                                  const float* factor, int64_t m, int64_t d, float* out) {
  std::fill_n(out, d, 0.0f);
  for (int64_t c = 0; c < m; ++c) add_scaled(out, factor[c], U + static_cast<int64_t>(labels[c]) * d, d);
  through_length(out, q, length, d);
}

// One step of a label: `unit` is l + offset at unit length, before and after.
METARANK_KERNEL void move_label(const float* Q, const int32_t* places, const float* factor, int64_t m, int64_t d,
                                float rate, const float* label, float* offset, float* unit, float& length,
                                float& squares, float* g) {
  std::fill_n(g, d, 0.0f);
  for (int64_t c = 0; c < m; ++c) add_scaled(g, factor[c], Q + places[c] * d, d);
  through_length(g, unit, length, d);
  squares += dot(g, g, d);
  add_scaled(offset, -rate / (std::sqrt(squares) + kTiny), g, d);
  for (int64_t j = 0; j < d; ++j) unit[j] = label[j] + offset[j];
  length = normalise(unit, d);
}

// Steps of Adam (Kingma and Ba, 2015) for numbers w of gradients g.
METARANK_KERNEL void adam(float* w, float* mean, float* square, const float* g, int64_t n, float rate, float first,
                          float second) {
  for (int64_t j = 0; j < n; ++j) {
    mean[j] = kAdamFirst * mean[j] + (1 - kAdamFirst) * g[j];
    square[j] = kAdamSecond * square[j] + (1 - kAdamSecond) * g[j] * g[j];
    w[j] -= rate * (mean[j] / first) / (std::sqrt(square[j] / second) + kAdamTiny);
  }
}

class Training {
 public:
  Training(In2<float> rows, In2<float> labels, Indptr indptr, Ids relevant, In2<int32_t> hard, In1<double> cumulated,
           const TwoSidedOptions& options, int n_threads)
      : rows_(rows), labels_(labels), indptr_(indptr), relevant_(relevant), hard_(hard), cumulated_(cumulated),
        options_(options), n_threads_(n_threads), d_(static_cast<int64_t>(rows.shape(1))),
        W_(d_ * d_), mean_(d_ * d_), square_(d_ * d_), offset_(labels.size()),
        unit_(labels.data(), labels.data() + labels.size()), length_(labels.shape(0), 1.0f), squares_(labels.shape(0)),
        log_scale_(std::log(options.scale)), pairs_(options.batch), stop_(labels.shape(0)) {
    for (int64_t j = 0; j < d_; ++j) W_[j * d_ + j] = 1.0f;
    const size_t size = options.batch * d_;
    x_.resize(size);
    q_.resize(size);
    dx_.resize(size);
  }

  void run() {
    std::vector<int64_t> order;
    for (size_t i = 0; i < rows_.shape(0); ++i)
      if (indptr_(i) < indptr_(i + 1)) order.push_back(static_cast<int64_t>(i));
    const auto n = static_cast<int64_t>(order.size());
    const int64_t steps = options_.epochs * ((n + options_.batch - 1) / options_.batch);
    for (int64_t epoch = 0; epoch < options_.epochs; ++epoch) {
      epoch_ = epoch;
      const uint64_t seed = hash_pair(options_.seed, epoch);
      for (int64_t i = n; i > 1; --i) std::swap(order[i - 1], order[hash_pair(seed, i) % i]);
      for (int64_t i = 0; i < n; i += options_.batch, ++step_)
        learn(order.data() + i, std::min(options_.batch, n - i), 1.0f - static_cast<float>(step_) / steps);
    }
  }

  std::tuple<Array2<float>, Array2<float>> result() {
    return {to_array(std::move(W_), d_, d_), to_array(std::move(unit_), labels_.shape(0), d_)};
  }

 private:
  // What a row of the batch is compared with, and the gradient of its loss by each cosine.
  struct Pairs {
    std::vector<int32_t> labels;
    std::vector<float> factor;
    float scale_gradient;
  };

  void learn(const int64_t* batch, int64_t m, float rate) {
    for (int64_t i = 0; i < m; ++i) std::copy_n(rows_.data() + batch[i] * d_, d_, x_.data() + i * d_);
    parallel_for(m, n_threads_, kTogether, [&](int64_t begin, int64_t end, int) {
      by_level<product>(x_.data() + begin * d_, d_, 1, end - begin, d_, W_.data(), d_, q_.data() + begin * d_);
      for (int64_t i = begin; i < end; ++i) compare(batch[i], q_.data() + i * d_, dx_.data() + i * d_, pairs_[i]);
    });
    move_labels(m, rate * options_.offset_rate);
    const float first = 1 - (power_first_ *= kAdamFirst), second = 1 - (power_second_ *= kAdamSecond);
    parallel_for(d_, n_threads_, 4 * kTogether, [&](int64_t begin, int64_t end, int) {
      std::vector<float> g((end - begin) * d_);
      by_level<product>(x_.data() + begin, 1, d_, end - begin, m, dx_.data(), d_, g.data());
      for (float& value : g) value /= static_cast<float>(m);
      by_level<adam>(W_.data() + begin * d_, mean_.data() + begin * d_, square_.data() + begin * d_, g.data(),
                     (end - begin) * d_, rate * options_.matrix_rate, first, second);
    });
    float g = 0;
    for (int64_t i = 0; i < m; ++i) g += pairs_[i].scale_gradient / static_cast<float>(m);
    by_level<adam>(&log_scale_, &scale_mean_, &scale_square_, &g, 1, rate * kScaleRate, first, second);
  }

  // `q` is the row times the matrix, and then of unit length; `dx` the gradient of the loss before it was.
  void compare(int64_t row, float* q, float* dx, Pairs& pairs) const {
    const int32_t *own = relevant_.data() + indptr_(row), *own_end = relevant_.data() + indptr_(row + 1);
    const auto n_own = own_end - own;
    const auto n_labels = static_cast<int32_t>(labels_.shape(0));
    std::vector<int32_t>& labels = pairs.labels;
    labels.assign(own, own_end);
    const auto n_hard = static_cast<int64_t>(hard_.shape(1));
    const int32_t *hard = hard_.data() + row * n_hard, *hard_end = hard + n_hard;
    const auto is_new = [&](int32_t label) { return label >= 0 && !std::binary_search(own, own_end, label); };
    std::copy_if(hard, hard_end, std::back_inserter(labels), is_new);
    const auto n_fixed = static_cast<int64_t>(labels.size());
    const uint64_t seed = hash_pair(hash_pair(options_.seed + 1, epoch_), row);
    for (int64_t c = 0; c < options_.n_drawn; ++c) {
      const double at = static_cast<double>(hash_pair(seed, c) >> 11) * 0x1p-53;
      const auto place = std::upper_bound(cumulated_.data(), cumulated_.data() + n_labels, at) - cumulated_.data();
      const int32_t label = std::min(static_cast<int32_t>(place), n_labels - 1);
      if (is_new(label) && !std::binary_search(hard, hard_end, label)) labels.push_back(label);
    }
    std::sort(labels.begin() + n_fixed, labels.end());
    labels.erase(std::unique(labels.begin() + n_fixed, labels.end()), labels.end());

    const float length = by_level<to_unit>(q, d_), scale = static_cast<float>(elementary::exp(log_scale_));
    const auto m = static_cast<int64_t>(labels.size());
    std::vector<float>& factor = pairs.factor;
    factor.resize(m);
    by_level<cosines>(q, unit_.data(), labels.data(), m, d_, factor.data());
    std::vector<float> cost(m);
    for (int64_t c = 0; c < m; ++c) cost[c] = -scale * factor[c];
    for (int64_t c = n_fixed; c < m; ++c) cost[c] += log_chance_of(labels[c]);
    const float least = *std::min_element(cost.begin(), cost.end());
    for (float& z : cost) z -= least;
    probabilities(cost.data(), m);
    float sum = 0;
    for (const float p : cost) sum += p;
    pairs.scale_gradient = 0;
    int64_t kept = 0;
    for (int64_t c = 0; c < m; ++c) {
      const float g = cost[c] / sum - (c < n_own ? 1.0f / static_cast<float>(n_own) : 0.0f);
      pairs.scale_gradient += g * scale * factor[c];
      if (std::fabs(g) < kLeastGradient) continue;
      labels[kept] = labels[c];
      factor[kept++] = scale * g;
    }
    labels.resize(kept);
    by_level<row_gradient>(q, length, unit_.data(), labels.data(), factor.data(), kept, d_, dx);
  }

  double share_of(int32_t label) const { return cumulated_(label) - (label > 0 ? cumulated_(label - 1) : 0.0); }

  float log_chance_of(int32_t label) const {
    return static_cast<float>(elementary::log(std::max(std::min(1.0, share_of(label) * options_.n_drawn), 1e-30)));
  }

  // The pairs of a batch by label, rows ascending, and a step of each label that moves.
  void move_labels(int64_t m, float rate) {
    std::vector<int32_t> touched;
    for (int64_t i = 0; i < m; ++i)
      for (const int32_t label : pairs_[i].labels)
        if (stop_[label]++ == 0) touched.push_back(label);
    std::vector<int64_t> start(touched.size() + 1);
    for (size_t t = 0; t < touched.size(); ++t) {
      start[t + 1] = start[t] + stop_[touched[t]];
      stop_[touched[t]] = static_cast<int32_t>(start[t]);
    }
    std::vector<int32_t> places(start.back());
    std::vector<float> factor(start.back());
    for (int64_t i = 0; i < m; ++i)
      for (size_t c = 0; c < pairs_[i].labels.size(); ++c) {
        const int32_t to = stop_[pairs_[i].labels[c]]++;
        places[to] = static_cast<int32_t>(i);
        factor[to] = pairs_[i].factor[c];
      }
    parallel_for(static_cast<int64_t>(touched.size()), n_threads_, 64, [&](int64_t begin, int64_t end, int) {
      std::vector<float> g(d_);
      for (int64_t t = begin; t < end; ++t) {
        const int64_t label = touched[t], first = start[t];
        if (share_of(touched[t]) <= 0) continue;
        by_level<move_label>(q_.data(), places.data() + first, factor.data() + first, start[t + 1] - first, d_, rate,
                             labels_.data() + label * d_, offset_.data() + label * d_, unit_.data() + label * d_,
                             length_[label], squares_[label], g.data());
      }
    });
    for (const int32_t label : touched) stop_[label] = 0;
  }

  In2<float> rows_, labels_;
  Indptr indptr_;
  Ids relevant_;
  In2<int32_t> hard_;
  In1<double> cumulated_;
  TwoSidedOptions options_;
  int n_threads_;
  int64_t d_, epoch_ = 0, step_ = 0;
  std::vector<float> W_, mean_, square_;
  std::vector<float> offset_, unit_, length_, squares_;  // of labels
  float log_scale_, scale_mean_ = 0, scale_square_ = 0, power_first_ = 1, power_second_ = 1;
  std::vector<float> x_, q_, dx_;  // of the rows of a batch
  std::vector<Pairs> pairs_;
  std::vector<int32_t> stop_;  // of each label, where its pairs end; 0 between batches
};

}  // namespace

std::tuple<Array2<float>, Array2<float>> train_two_sided(In2<float> rows, In2<float> labels, Indptr indptr, Ids relevant,
                                                         In2<int32_t> hard, In1<double> cumulated,
                                                         const TwoSidedOptions& options, int n_threads) {
  const size_t n = rows.shape(0), n_labels = labels.shape(0);
  require(rows.shape(1) == labels.shape(1) && rows.shape(1) > 0, "rows and labels must have as many columns");
  require(indptr.shape(0) == n + 1 && hard.shape(0) == n, "relevant and hard labels must be of each row");
  require(cumulated.shape(0) == n_labels && n_labels > 0, "cumulated must have one entry a label");
  require(options.batch > 0 && options.epochs >= 0 && options.n_drawn >= 0 && options.scale > 0,
          "batch and scale must be positive, epochs and n_drawn at least 0");
  require_indptr(indptr, static_cast<int64_t>(relevant.shape(0)), "indptr");
  const auto within = [&](const int32_t* ids, size_t m, int32_t least) {
    return std::all_of(ids, ids + m, [&](int32_t id) { return id >= least && id < static_cast<int64_t>(n_labels); });
  };
  require(within(relevant.data(), relevant.size(), 0) && within(hard.data(), hard.size(), -1),
          "relevant and hard labels must lie in [0, L), or be -1 for no hard one");
  Training training(rows, labels, indptr, relevant, hard, cumulated, options, n_threads);
  training.run();
  return training.result();
}

}  // namespace metarank
