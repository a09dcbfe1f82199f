#include "rank_gradients.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "arrays.h"
#include "parallel.h"
#include "lists.h"

namespace metarank {

namespace {

using Index = std::int64_t;

struct Scratch {
  std::vector<Index> order, level, place;
  std::vector<double> key;
  std::vector<float> grades;

  // Ids 0..n-1 by descending score, ties by id.
  void sort_descending(const double* s, Index n) {
    order.resize(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Index{0});
    std::sort(order.begin(), order.end(), [s](Index a, Index b) { return s[a] != s[b] ? s[a] > s[b] : a < b; });
  }
};

// log(1 + exp(s)) - y s, summed over the pairs; y in [0, 1].
double logistic_list(const double* s, const float* y, Index n, double* grad, Scratch&) {
  double loss = 0;
  for (Index i = 0; i < n; ++i) {
    const double e = std::exp(-std::fabs(s[i]));
    loss += std::max(s[i], 0.0) + std::log1p(e) - y[i] * s[i];
    grad[i] = (s[i] >= 0 ? 1.0 : e) / (1.0 + e) - y[i];
  }
  return loss;
}

// Cross entropy between gains / sum(gains) and softmax(s).
double listnet_list(const double* s, const float* gain, Index n, double* grad, Scratch&) {
  const double top = *std::max_element(s, s + n);
  double mass = 0, total = 0, matched = 0;
  for (Index i = 0; i < n; ++i) {
    grad[i] = std::exp(s[i] - top);
    mass += grad[i];
    total += gain[i];
    matched += gain[i] * (s[i] - top);
  }
  if (total <= 0) {
    std::fill(grad, grad + n, 0.0);
    return 0;
  }
  for (Index i = 0; i < n; ++i) grad[i] = grad[i] / mass - gain[i] / total;
  return std::log(mass) - matched / total;
}

// Number, sum and sum of squares of the scores seen so far, by grade: a Fenwick tree.
struct GradeSums {
  struct Sums {
    double n = 0, s = 0, ss = 0;
  };
  std::vector<Sums> tree;

  explicit GradeSums(Index n_levels) : tree(static_cast<std::size_t>(n_levels) + 1) {}
  void add(Index level, double s) {
    for (auto i = static_cast<std::size_t>(level) + 1; i < tree.size(); i += i & -i) {
      tree[i].n += 1;
      tree[i].s += s;
      tree[i].ss += s * s;
    }
  }
  Sums below(Index level) const {
    Sums out;
    for (auto i = static_cast<std::size_t>(level); i > 0; i -= i & -i) {
      out.n += tree[i].n;
      out.s += tree[i].s;
      out.ss += tree[i].ss;
    }
    return out;
  }
};

// Mean of max(0, 1 - (s_i - s_j))^2 over the pairs with gain_i > gain_j. Two
// sweeps over the sorted scores keep, by grade, the sums of the scores inside
// the margin: O(n log n) however many pairs there are.
double ranksvm_list(const double* scores, const float* gain, Index n, double* grad, Scratch& work) {
  work.sort_descending(scores, n);
  const auto& order = work.order;
  work.key.resize(static_cast<std::size_t>(n));
  // Differences alone matter; small numbers keep the sums of squares exact.
  for (Index k = 0; k < n; ++k) work.key[k] = scores[order[k]] - scores[order[0]];
  const auto& s = work.key;

  work.grades.assign(gain, gain + n);
  std::sort(work.grades.begin(), work.grades.end());
  double ordered_pairs = 0;
  work.level.resize(static_cast<std::size_t>(n));
  for (Index k = 0; k < n; ++k) {
    const auto lower = std::lower_bound(work.grades.begin(), work.grades.end(), gain[order[k]]);
    ordered_pairs += static_cast<double>(lower - work.grades.begin());
  }
  work.grades.erase(std::unique(work.grades.begin(), work.grades.end()), work.grades.end());
  const auto n_levels = static_cast<Index>(work.grades.size());
  std::fill(grad, grad + n, 0.0);
  if (n_levels < 2) return 0;
  for (Index k = 0; k < n; ++k)
    work.level[k] = std::lower_bound(work.grades.begin(), work.grades.end(), gain[order[k]]) - work.grades.begin();
  const auto& level = work.level;

  double loss = 0;
  GradeSums worse(n_levels);
  for (Index k = 0, next = 0; k < n; ++k) {  // k as the better one: lower grades scored above s_k - 1
    for (; next < n && s[next] > s[k] - 1; ++next) worse.add(level[next], s[next]);
    const auto sums = worse.below(level[k]);
    const double a = 1 - s[k];
    loss += a * a * sums.n + 2 * a * sums.s + sums.ss;
    grad[order[k]] -= 2 * (a * sums.n + sums.s);
  }
  GradeSums better(n_levels);
  for (Index k = n - 1, next = n - 1; k >= 0; --k) {  // k as the worse one: higher grades scored below s_k + 1
    for (; next >= 0 && s[next] < s[k] + 1; --next) better.add(n_levels - 1 - level[next], s[next]);
    const auto sums = better.below(n_levels - 1 - level[k]);
    grad[order[k]] += 2 * ((1 + s[k]) * sums.n - sums.s);
  }
  for (Index i = 0; i < n; ++i) grad[i] /= ordered_pairs;
  return loss / ordered_pairs;
}

// max over rankings y of 1 - AP(y) + s.(psi(y) - psi(y*)): Yue & Finley 2007,
// Algorithm 1. Each irrelevant pair, best first, is put above the relevant pair
// where it gains most; the choices do not interact.
double svmmap_list(const double* s, const float* gain, Index n, double* grad, Scratch& work) {
  std::fill(grad, grad + n, 0.0);
  work.sort_descending(s, n);
  auto& order = work.order;
  const auto middle =
      std::stable_partition(order.begin(), order.end(), [gain](Index i) { return gain[i] > 0; }) - order.begin();
  const Index n_rel = middle, n_irr = n - middle;
  if (n_rel == 0 || n_irr == 0) return 0;
  const Index *rel = order.data(), *irr = order.data() + n_rel;
  const double r = static_cast<double>(n_rel), unit = 2.0 / (r * static_cast<double>(n_irr));

  work.place.assign(static_cast<std::size_t>(n_rel) + 1, 0);  // irrelevant pairs put just above relevant k
  double loss = 0;
  for (Index j = 1; j <= n_irr; ++j) {
    const double score = s[irr[j - 1]];
    double value = 0, best = 0;
    Index place = n_rel;  // below every relevant pair
    for (Index k = n_rel; k >= 1; --k) {
      const auto a = static_cast<double>(j), b = static_cast<double>(k);
      value += (a / (a + b) - (a - 1) / (a + b - 1)) / r - unit * (s[rel[k - 1]] - score);
      if (value > best) {
        best = value;
        place = k - 1;
      }
    }
    loss += best;
    ++work.place[place];
    grad[irr[j - 1]] = unit * static_cast<double>(n_rel - place);
  }
  Index above = 0;
  for (Index k = 0; k < n_rel; ++k) {
    above += work.place[k];
    grad[rel[k]] = -unit * static_cast<double>(above);
  }
  return loss;
}

using ListLoss = double (*)(const double*, const float*, Index, double*, Scratch&);

template <ListLoss list_loss>
LossAndGradient loss_and_gradient(In1<double> scores, In1<float> gains, In1<Index> indptr, In1<double> weights,
                                  int n_threads) {
  const Index n = require_lists(indptr, scores.shape(0));
  require(gains.shape(0) == scores.shape(0), "gains must have one entry a score");
  require_finite(scores, "scores");
  require_finite(gains, "gains");
  require(static_cast<Index>(weights.shape(0)) == n, "weights must have one entry a list");
  std::vector<double> grad(scores.shape(0), 0.0);
  double loss = 0;
  std::vector<double> losses(static_cast<std::size_t>(n), 0.0);
  parallel_for(n, n_threads, 64, [&](Index begin, Index end, int) {
    Scratch work;
    for (Index i = begin; i < end; ++i) {
      const Index first = indptr(i), size = indptr(i + 1) - first;
      if (size == 0 || weights(i) == 0) continue;
      double* g = grad.data() + first;
      losses[i] = weights(i) * list_loss(scores.data() + first, gains.data() + first, size, g, work);
      for (Index k = 0; k < size; ++k) g[k] *= weights(i);
    }
  });
  for (const double value : losses) loss += value;
  return {loss, to_array(std::move(grad))};
}

}  // namespace

LossAndGradient logistic_loss(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, In1<double> weights,
                              int n_threads) {
  return loss_and_gradient<logistic_list>(scores, gains, indptr, weights, n_threads);
}

LossAndGradient listnet_loss(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, In1<double> weights,
                             int n_threads) {
  return loss_and_gradient<listnet_list>(scores, gains, indptr, weights, n_threads);
}

LossAndGradient ranksvm_loss(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, In1<double> weights,
                             int n_threads) {
  return loss_and_gradient<ranksvm_list>(scores, gains, indptr, weights, n_threads);
}

LossAndGradient svmmap_loss(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, In1<double> weights,
                            int n_threads) {
  return loss_and_gradient<svmmap_list>(scores, gains, indptr, weights, n_threads);
}

}  // namespace metarank
