#include "candidate_lists.h"

#include <iterator>
#include <limits>

#include "elementary.h"
#include "lists.h"
#include "simd.h"

namespace metarank {

std::tuple<Array1<int64_t>, Array1<int32_t>> unite_lists(const std::vector<ListView>& parts) {
  require(!parts.empty(), "there must be at least one part");
  size_t most = 0;
  for (const ListView& part : parts) {
    require_indptr(part.indptr, static_cast<int64_t>(part.labels.shape(0)), "indptr");
    require(part.indptr.shape(0) == parts[0].indptr.shape(0), "parts must have the same rows");
    most += part.labels.shape(0);
  }
  std::vector<int64_t> start{0};
  std::vector<int32_t> united, row, merged;
  united.reserve(most);
  for (size_t i = 0; i + 1 < parts[0].indptr.shape(0); ++i) {
    row.clear();
    for (const ListView& part : parts) {
      const int32_t* list = part.labels.data();
      merged.clear();
      std::set_union(row.begin(), row.end(), list + part.indptr(i), list + part.indptr(i + 1),
                     std::back_inserter(merged));
      row.swap(merged);
    }
    united.insert(united.end(), row.begin(), row.end());
    start.push_back(static_cast<int64_t>(united.size()));
  }
  return {to_array(std::move(start)), to_array(std::move(united))};
}

Array2<float> proposal_columns(const std::vector<ListView>& parts, Indptr indptr, Ids labels, Values own, float absent,
                               int n_threads) {
  const size_t S = parts.size(), width = 2 * S + 1, m = labels.shape(0);
  require(own.shape(0) == m, "each pair must have a value of its own");
  require(S > 0, "there must be at least one part");
  require_indptr(indptr, static_cast<int64_t>(m), "indptr");
  for (const ListView& part : parts) {
    require_indptr(part.indptr, static_cast<int64_t>(part.labels.shape(0)), "part_indptr");
    require(part.indptr.shape(0) == indptr.shape(0), "parts must have the same rows");
    require(part.scores.shape(0) == part.labels.shape(0), "each label of a part must have a score");
  }
  std::vector<float> out(m * width);
  for (size_t pair = 0; pair < m; ++pair) out[pair * width + 2 * S] = own(pair);
  const auto n = static_cast<int64_t>(indptr.shape(0)) - 1;
  parallel_for(n, n_threads, 64, [&](int64_t begin, int64_t end, int) {
    std::vector<int64_t> order, place;
    for (int64_t i = begin; i < end; ++i)
      for (size_t s = 0; s < S; ++s) {
        const int64_t first = parts[s].indptr(i), count = parts[s].indptr(i + 1) - first;
        const int32_t* const list = parts[s].labels.data() + first;
        const float* const score = parts[s].scores.data() + first;
        sort_descending(score, count, order);
        place.resize(count);
        for (int64_t j = 0; j < count; ++j) place[order[j]] = j;
        const float least = count == 0 ? 0.0f : score[order.back()];
        int64_t j = 0;
        for (int64_t pair = indptr(i); pair < indptr(i + 1); ++pair) {
          float* const at = out.data() + pair * width + 2 * s;
          while (j < count && list[j] < labels(pair)) ++j;
          const bool proposed = j < count && list[j] == labels(pair);
          at[0] = proposed ? score[j] : least;
          at[1] = proposed ? static_cast<float>(place[j]) : absent;
        }
      }
  });
  return to_array(std::move(out), m, width);
}

Array1<uint8_t> foremost(In1<double> scores, In1<int64_t> indptr, int64_t k) {
  require_indptr(indptr, static_cast<int64_t>(scores.shape(0)), "indptr");
  require(k > 0, "k must be positive");
  std::vector<uint8_t> out(scores.shape(0), 0);
  std::vector<int64_t> order;
  for (size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    order.resize(static_cast<size_t>(indptr(i + 1) - indptr(i)));
    std::iota(order.begin(), order.end(), indptr(i));
    const auto kept = std::min(order.size(), static_cast<size_t>(k));
    if (kept < order.size())
      std::nth_element(
          order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
          [&](int64_t a, int64_t b) { return scores(a) > scores(b) || (scores(a) == scores(b) && a < b); });
    for (size_t j = 0; j < kept; ++j) out[order[j]] = 1;
  }
  return to_array(std::move(out));
}

Array1<double> with_pairs_behind(In1<double> evidence, In1<double> rough, In1<uint8_t> ahead, In1<int64_t> indptr,
                                 double gap) {
  require(rough.shape(0) == ahead.shape(0), "each pair must have a rough score");
  require_indptr(indptr, static_cast<int64_t>(rough.shape(0)), "indptr");
  const auto n_ahead = static_cast<size_t>(std::count(ahead.data(), ahead.data() + ahead.shape(0), 1));
  require(evidence.shape(0) == n_ahead, "each pair ahead must have its evidence");
  std::vector<double> out(rough.shape(0));
  size_t next = 0;
  for (size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    double least = std::numeric_limits<double>::infinity(), best = -least;
    for (int64_t pair = indptr(i); pair < indptr(i + 1); ++pair)
      if (ahead(pair)) {
        least = std::min(least, out[pair] = evidence(next++));
      } else {
        best = std::max(best, rough(pair));
      }
    const double move = least == std::numeric_limits<double>::infinity() ? 0.0 : least - gap - best;
    for (int64_t pair = indptr(i); pair < indptr(i + 1); ++pair)
      if (!ahead(pair)) out[pair] = rough(pair) + move;
  }
  return to_array(std::move(out));
}

// --- the table of features ---------------------------------------------------

namespace {

// One list of `count` rows of F finite values, to rows `stride` apart; sums run down the list, in double.
METARANK_KERNEL void standardize_list(const float* values, int64_t count, int64_t F, double* mean, double* scale,
                                      float* out, int64_t stride) {
  for (int64_t f = 0; f < F; ++f) mean[f] = scale[f] = 0.0;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t f = 0; f < F; ++f) mean[f] += values[i * F + f];
  for (int64_t f = 0; f < F; ++f) mean[f] /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t f = 0; f < F; ++f) {
      const double t = values[i * F + f] - mean[f];
      scale[f] += t * t;
    }
  // Equal floats have an exact sum in double, hence an exact mean and a deviation of exactly 0.
  for (int64_t f = 0; f < F; ++f)
    scale[f] = scale[f] > 0.0 ? 1.0 / std::sqrt(scale[f] / static_cast<double>(count)) : 0.0;
  for (int64_t i = 0; i < count; ++i)
    for (int64_t f = 0; f < F; ++f) out[i * stride + f] = static_cast<float>((values[i * F + f] - mean[f]) * scale[f]);
}

bool all_finite(const float* values, size_t n) {
  bool finite = true;
  for (size_t i = 0; i < n; ++i) finite &= std::isfinite(values[i]);
  return finite;
}

}  // namespace

Array2<float> feature_table(const std::vector<In1<float>>& columns, In1<int64_t> indptr,
                            const std::vector<int64_t>& own, bool standardize, int n_threads) {
  require(!columns.empty(), "columns must not be empty");
  const auto m = static_cast<int64_t>(columns[0].shape(0)), F = static_cast<int64_t>(columns.size());
  for (const auto& column : columns) {
    require(static_cast<int64_t>(column.shape(0)) == m, "columns must have the same length");
    require(all_finite(column.data(), column.shape(0)), "columns must be finite");
  }
  for (const int64_t f : own) require(f >= 0 && f < F, "own must be numbers of columns");
  require_indptr(indptr, m, "indptr");
  const auto n_own = static_cast<int64_t>(own.size()), width = n_own + (standardize ? F : 0);
  std::vector<float> out(static_cast<size_t>(m * width));
  const auto n = static_cast<int64_t>(indptr.shape(0)) - 1;
  parallel_for(n, n_threads, 64, [&](int64_t begin, int64_t end, int) {
    std::vector<double> mean(static_cast<size_t>(F)), scale(static_cast<size_t>(F));
    std::vector<float> list;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t first = indptr.data()[i], count = indptr.data()[i + 1] - first;
      list.resize(static_cast<size_t>(count * F));
      for (int64_t f = 0; f < F; ++f) {
        const float* column = columns[f].data() + first;
        for (int64_t j = 0; j < count; ++j) list[j * F + f] = column[j];
      }
      float* rows = out.data() + first * width;
      for (int64_t j = 0; j < count; ++j)
        for (int64_t f = 0; f < n_own; ++f) rows[j * width + f] = list[j * F + own[f]];
      if (standardize && count > 0)
        by_level<standardize_list>(list.data(), count, F, mean.data(), scale.data(), rows + n_own, width);
    }
  });
  return to_array(std::move(out), static_cast<size_t>(m), static_cast<size_t>(width));
}

// --- cuts --------------------------------------------------------------------

namespace {

constexpr int64_t kContext = 9;
// Distances within a list say no more beyond these.
constexpr double kFarGap = 5.0, kFarScore = 8.0;
// Relevant labels beyond those looked at one by one: the most that are counted, and the most expected.
constexpr int64_t kUnseen = 32;
constexpr double kMaxUnseen = 12.0;

}  // namespace

Array1<int32_t> list_ranks(In1<double> scores, In1<int64_t> indptr) {
  const int64_t n = require_lists(indptr, scores.shape(0));
  require_finite(scores, "scores");
  std::vector<int32_t> out(scores.shape(0));
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = indptr(i), size = indptr(i + 1) - first;
    sort_descending(scores.data() + first, size, order);
    for (int64_t r = 0; r < size; ++r) out[first + order[r]] = static_cast<int32_t>(r);
  }
  return to_array(std::move(out));
}

Array2<double> list_context(In1<double> scores, In1<int64_t> indptr) {
  const int64_t n = require_lists(indptr, scores.shape(0));
  require_finite(scores, "scores");
  std::vector<double> out(scores.shape(0) * kContext);
  std::vector<int64_t> order;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = indptr(i), size = indptr(i + 1) - first;
    const double* s = scores.data() + first;
    sort_descending(s, size, order);
    double expected = 0;
    for (int64_t j = 0; j < size; ++j) expected += elementary::logistic(s[j]);
    for (int64_t r = 0; r < size; ++r) {
      const int64_t j = order[r];
      const double other = s[order[r == 0 && size > 1 ? 1 : 0]];
      const double best_other = std::clamp(other, -kFarScore, kFarScore);
      double* x = out.data() + (first + j) * kContext;
      x[0] = 1.0;
      x[1] = s[j];
      x[2] = expected - elementary::logistic(s[j]);
      x[3] = elementary::log1p(static_cast<double>(r));
      x[4] = r == 0;
      x[5] = best_other;
      x[6] = s[j] - best_other;
      x[7] = r == 0 ? 0.0 : std::min(kFarGap, s[order[r - 1]] - s[j]);
      x[8] = r + 1 == size ? 0.0 : std::min(kFarGap, s[j] - s[order[r + 1]]);
    }
  }
  return to_array(std::move(out), scores.shape(0), static_cast<size_t>(kContext));
}

namespace {

// Neighbours of one list that share a value.
struct Pool {
  double logit, relevant, irrelevant;  // expected numbers
  int64_t size;
};

Pool pooled(const Pool& a, const Pool& b) {
  Pool out{a.logit, a.relevant + b.relevant, a.irrelevant + b.irrelevant, a.size + b.size};
  const auto share = static_cast<double>(a.size) / static_cast<double>(out.size);
  // Where one of them is 0 in double precision, the mean of the log-odds is as good.
  out.logit = out.relevant > 0 && out.irrelevant > 0 ? elementary::log(out.relevant) - elementary::log(out.irrelevant)
                                                     : share * a.logit + (1 - share) * b.logit;
  return out;
}

}  // namespace

Array1<double> falling_logits(In1<double> logits, In1<float> scores, In1<int64_t> indptr) {
  const int64_t n = require_lists(indptr, scores.shape(0));
  require(logits.shape(0) == scores.shape(0), "each score must have log-odds");
  require_finite(logits, "logits");
  require_finite(scores, "scores");
  std::vector<double> out(scores.shape(0));
  std::vector<int64_t> order;
  std::vector<Pool> pools;
  for (int64_t i = 0; i < n; ++i) {
    const int64_t first = indptr(i), size = indptr(i + 1) - first;
    sort_descending(scores.data() + first, size, order);
    pools.clear();
    for (int64_t r = 0; r < size; ++r) {
      const double z = logits(first + order[r]);
      pools.push_back({z, elementary::logistic(z), elementary::logistic(-z), 1});
      while (pools.size() > 1 && pools[pools.size() - 2].logit < pools.back().logit) {
        const Pool last = pools.back();
        pools.pop_back();
        pools.back() = pooled(pools.back(), last);
      }
    }
    int64_t r = 0;
    for (const Pool& pool : pools)
      for (const int64_t end = r + pool.size; r < end; ++r) out[first + order[r]] = pool.logit;
  }
  return to_array(std::move(out));
}

namespace {

// How many of the best labels of one list have the greatest expected F1, the labels being independent:
//   E F1(k) = sum_{a, b} 2 a / (k + a + b) Pr(a of the k best) Pr(b of the rest),   E F1(0) = Pr(none).
// `rest` counts the labels beyond the first `size`, as a Poisson variable of mean `unseen`.
int64_t best_size(const double* p, int64_t size, double unseen, bool allow_empty, std::vector<double>& after,
                  std::vector<double>& before) {
  const int64_t width = size + 1 + (unseen > 0 ? kUnseen : 0);
  after.assign(static_cast<size_t>((size + 1) * width), 0.0);  // after[j]: number of relevant among j, j+1, ...
  double* tail = after.data() + size * width;
  double term = elementary::exp(-unseen);
  for (int64_t b = 0; b < (unseen > 0 ? kUnseen : 1); ++b) {
    tail[b] = term;
    term *= unseen / static_cast<double>(b + 1);
  }
  for (int64_t j = size - 1; j >= 0; --j) {
    const double* next = after.data() + (j + 1) * width;
    double* here = after.data() + j * width;
    here[0] = next[0] * (1 - p[j]);
    for (int64_t b = 1; b < width; ++b) here[b] = next[b] * (1 - p[j]) + next[b - 1] * p[j];
  }
  before.assign(static_cast<size_t>(size + 1), 0.0);
  before[0] = 1.0;
  int64_t best = 0;
  double best_value = allow_empty ? after[0] : -1.0;
  for (int64_t k = 1; k <= size; ++k) {
    for (int64_t a = k; a >= 0; --a) before[a] = before[a] * (1 - p[k - 1]) + (a > 0 ? before[a - 1] * p[k - 1] : 0.0);
    const double* rest = after.data() + k * width;
    double value = 0;
    for (int64_t a = 1; a <= k; ++a) {
      double sum = 0;
      for (int64_t b = 0; b < width - k; ++b) sum += rest[b] / static_cast<double>(k + a + b);
      value += 2.0 * static_cast<double>(a) * before[a] * sum;
    }
    if (value > best_value) {
      best_value = value;
      best = k;
    }
  }
  return best;
}

}  // namespace

Array1<int64_t> expected_f1_sizes(In1<double> probabilities, In1<int64_t> indptr, double unseen, int64_t max_size,
                                  bool allow_empty) {
  const int64_t n = require_lists(indptr, probabilities.shape(0));
  for (size_t i = 0; i < probabilities.shape(0); ++i)
    require(probabilities(i) >= 0 && probabilities(i) <= 1, "probabilities must lie in [0, 1]");
  require(unseen >= 0, "unseen must be non-negative");
  require(max_size >= 1, "max_size must be positive");
  std::vector<int64_t> out(static_cast<size_t>(n));
  std::vector<double> p, after, before;
  for (int64_t i = 0; i < n; ++i) {
    p.assign(probabilities.data() + indptr(i), probabilities.data() + indptr(i + 1));
    std::sort(p.begin(), p.end(), std::greater<double>());
    const int64_t size = std::min(max_size, static_cast<int64_t>(p.size()));
    double rest = unseen;
    for (size_t j = static_cast<size_t>(size); j < p.size(); ++j) rest += p[j];
    out[i] = best_size(p.data(), size, std::min(rest, kMaxUnseen), allow_empty, after, before);
  }
  return to_array(std::move(out));
}

}  // namespace metarank
