#include "list_losses.h"

#include <limits>

#include "elementary.h"
#include "lists.h"
#include "simd.h"

namespace metarank {

namespace {

using Index = int64_t;

struct Scratch {
  std::vector<Index> order, level, place;
  std::vector<double> key;
  std::vector<float> grades;
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

  explicit GradeSums(Index n_levels) : tree(n_levels + 1) {}
  void add(size_t level, double s) {
    for (size_t i = level + 1; i < tree.size(); i += i & -i) {
      tree[i].n += 1;
      tree[i].s += s;
      tree[i].ss += s * s;
    }
  }
  Sums below(size_t level) const {
    Sums out;
    for (size_t i = level; i > 0; i -= i & -i) {
      out.n += tree[i].n;
      out.s += tree[i].s;
      out.ss += tree[i].ss;
    }
    return out;
  }
};

// Mean of max(0, 1 - (s_i - s_j))^2 over the pairs with gain_i > gain_j. Two sweeps over the sorted scores keep, by
// grade, the sums of the scores inside the margin: O(n log n) however many pairs there are.
double ranksvm_list(const double* scores, const float* gain, Index n, double* grad, Scratch& work) {
  sort_descending(scores, n, work.order);
  const auto& order = work.order;
  auto &s = work.key;
  auto &level = work.level;
  s.resize(n);
  // Differences alone matter; small numbers keep the sums of squares exact.
  for (Index k = 0; k < n; ++k) s[k] = scores[order[k]] - scores[order[0]];

  auto& grades = work.grades;
  grades.assign(gain, gain + n);
  std::sort(grades.begin(), grades.end());
  const auto rank_of = [&](Index k) {
    return std::lower_bound(grades.begin(), grades.end(), gain[order[k]]) - grades.begin();
  };
  double ordered_pairs = 0;
  for (Index k = 0; k < n; ++k) ordered_pairs += static_cast<double>(rank_of(k));
  grades.erase(std::unique(grades.begin(), grades.end()), grades.end());
  const auto n_levels = static_cast<Index>(grades.size());
  std::fill(grad, grad + n, 0.0);
  if (n_levels < 2) return 0;
  level.resize(n);
  for (Index k = 0; k < n; ++k) level[k] = rank_of(k);

  double loss = 0;
  GradeSums worse(n_levels), better(n_levels);
  for (Index k = 0, next = 0; k < n; ++k) {  // k as the better one: lower grades scored above s_k - 1
    for (; next < n && s[next] > s[k] - 1; ++next) worse.add(level[next], s[next]);
    const auto sums = worse.below(level[k]);
    const double a = 1 - s[k];
    loss += a * a * sums.n + 2 * a * sums.s + sums.ss;
    grad[order[k]] -= 2 * (a * sums.n + sums.s);
  }
  for (Index k = n - 1, next = n - 1; k >= 0; --k) {  // k as the worse one: higher grades scored below s_k + 1
    for (; next >= 0 && s[next] < s[k] + 1; --next) better.add(n_levels - 1 - level[next], s[next]);
    const auto sums = better.below(n_levels - 1 - level[k]);
    grad[order[k]] += 2 * ((1 + s[k]) * sums.n - sums.s);
  }
  for (Index i = 0; i < n; ++i) grad[i] /= ordered_pairs;
  return loss / ordered_pairs;
}

// max over rankings y of 1 - AP(y) + s.(psi(y) - psi(y*)): Yue & Finley 2007, Algorithm 1. Each irrelevant pair, best
// first, is put above the relevant pair where it gains most; the choices do not interact.
double svmmap_list(const double* s, const float* gain, Index n, double* grad, Scratch& work) {
  std::fill(grad, grad + n, 0.0);
  sort_descending(s, n, work.order);
  auto& order = work.order;
  const Index n_rel =
      std::stable_partition(order.begin(), order.end(), [gain](Index i) { return gain[i] > 0; }) - order.begin();
  const Index n_irr = n - n_rel;
  if (n_rel == 0 || n_irr == 0) return 0;
  const Index *rel = order.data(), *irr = order.data() + n_rel;
  const double r = static_cast<double>(n_rel), unit = 2.0 / (r * static_cast<double>(n_irr));

  work.place.assign(n_rel + 1, 0);  // irrelevant pairs put just above relevant k
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

ListLoss loss_of(const std::string& name) {
  if (name == "logistic") return logistic_list;
  if (name == "listnet") return listnet_list;
  if (name == "ranksvm") return ranksvm_list;
  require(name == "svmmap", "a loss must be 'logistic', 'listnet', 'ranksvm' or 'svmmap'");
  return svmmap_list;
}

}  // namespace

LossAndGradient list_loss(const std::string& name, In1<double> scores, In1<float> gains, In1<Index> indptr,
                          In1<double> weights, int n_threads) {
  const ListLoss loss_of_list = loss_of(name);
  const Index n = require_lists(indptr, scores.shape(0));
  require(gains.shape(0) == scores.shape(0), "gains must have one entry a score");
  require_finite(scores, "scores");
  require_finite(gains, "gains");
  require(static_cast<Index>(weights.shape(0)) == n, "weights must have one entry a list");
  std::vector<double> grad(scores.shape(0), 0.0);
  const double loss = sum_over_lists<Scratch>(indptr, n_threads, [&](Scratch& work, Index i, Index first, Index size) {
    if (size == 0 || weights(i) == 0) return 0.0;
    double* g = grad.data() + first;
    const double value = weights(i) * loss_of_list(scores.data() + first, gains.data() + first, size, g, work);
    for (Index k = 0; k < size; ++k) g[k] *= weights(i);
    return value;
  });
  return {loss, to_array(std::move(grad))};
}

// --- LambdaRank and nDCG ----------------------------------------------------

namespace {

// 1 / (1 + exp(x)) at 2^20 points of |x| <= 25, the value of the point below: LightGBM's table, so that boosting on
// these gradients grows LightGBM's trees.
class SigmoidTable {
 public:
  SigmoidTable() : value_(kPoints) {
    for (Index i = 0; i < kPoints; ++i) value_[i] = 1.0 / (1.0 + std::exp(static_cast<double>(i) / kScale - kLimit));
  }
  double at(double x) const {
    if (x <= -kLimit) return value_.front();
    if (x >= kLimit) return value_.back();
    return value_[(x + kLimit) * kScale];
  }

 private:
  static constexpr Index kPoints = 1 << 20;
  static constexpr double kLimit = 25, kScale = kPoints / (2 * kLimit);
  std::vector<double> value_;
};

std::vector<double> discounts(const In1<Index>& indptr) {
  Index longest = 0;
  for (size_t i = 0; i + 1 < indptr.shape(0); ++i) longest = std::max(longest, indptr(i + 1) - indptr(i));
  std::vector<double> out(longest);
  for (Index i = 0; i < longest; ++i) out[i] = 1.0 / elementary::log2(2.0 + static_cast<double>(i));
  return out;
}

// Weights of m pairs, and how far the better one is ahead.
METARANK_KERNEL void weigh_pairs(double gain_i, double score_i, double discount_i, double ideal, bool by_distance,
                                 Index m, const double* gain, const double* score, const double* discount,
                                 double* sign, double* weight, double* ahead) {
  for (Index k = 0; k < m; ++k) {
    const double gap = gain_i - gain[k];
    sign[k] = gap > 0 ? 1.0 : -1.0;
    ahead[k] = sign[k] * (score_i - score[k]);
    weight[k] = std::fabs(gap) * (discount_i - discount[k]) * ideal;
  }
  if (by_distance)
    for (Index k = 0; k < m; ++k) weight[k] /= 0.01f + std::fabs(ahead[k]);
}

METARANK_KERNEL void slope_pairs(double sigmoid, Index m, const double* sign, const double* weight,
                                 const double* sigma, double* lambda, double* bend) {
  for (Index k = 0; k < m; ++k) {
    const double size = sigmoid * weight[k] * sigma[k];
    lambda[k] = sign[k] * size;
    bend[k] = sigmoid * size * (1 - sigma[k]);
  }
}

// One list by rank, and of its row at hand the rows ranked below it that differ in gain, side by side so that the loops
// run wide; `sign` is +1 where the row at hand is the better one.
struct RankedList {
  std::vector<Index> order, id;
  std::vector<double> score, gain, grad, hess;
  double loss, total;
  std::vector<double> pair_gain, pair_score, pair_discount, sign, weight, ahead, lambda, bend;

  void sort(const double* s, const double* key, const double* gains, Index n) {
    sort_descending(key, n, order);
    loss = total = 0;
    id.resize(n);
    for (auto* column : {&score, &gain, &pair_gain, &pair_score, &pair_discount, &sign, &weight, &ahead, &lambda, &bend})
      column->resize(n);
    grad.assign(n, 0.0);
    hess.assign(n, 0.0);
    for (Index i = 0; i < n; ++i) {
      score[i] = s[order[i]];
      gain[i] = gains[order[i]];
    }
  }

  // The pairs of row i with those below it; of each, |lambda| counts twice in the total.
  void add_pairs(Index i, double ideal, double sigmoid, bool by_distance, bool with_loss,
                 const std::vector<double>& discount) {
    static const SigmoidTable table;
    Index m = 0;
    for (Index j = i + 1; j < static_cast<Index>(order.size()); ++j) {
      id[m] = j;
      pair_gain[m] = gain[j];
      pair_score[m] = score[j];
      pair_discount[m] = discount[j];
      m += gain[j] != gain[i];
    }
    by_level<weigh_pairs>(gain[i], score[i], discount[i], ideal, by_distance, m, pair_gain.data(), pair_score.data(),
                          pair_discount.data(), sign.data(), weight.data(), ahead.data());
    if (with_loss)
      for (Index k = 0; k < m; ++k) {
        const double z = sigmoid * ahead[k];
        loss += weight[k] * (std::max(-z, 0.0) + std::log1p(std::exp(-std::fabs(z))));
      }
    std::vector<double>& sigma = ahead;
    for (Index k = 0; k < m; ++k) sigma[k] = table.at(sigmoid * ahead[k]);
    by_level<slope_pairs>(sigmoid, m, sign.data(), weight.data(), sigma.data(), lambda.data(), bend.data());
    double grad_i = 0, hess_i = 0;
    for (Index k = 0; k < m; ++k) {
      grad[id[k]] += lambda[k];
      hess[id[k]] += bend[k];
      grad_i -= lambda[k];
      hess_i += bend[k];
      total += 2 * std::fabs(lambda[k]);
    }
    grad[i] += grad_i;
    hess[i] += hess_i;
  }
};

std::vector<double> in_order(const In1<double>& values, const In1<Index>& order) {
  std::vector<double> out(values.shape(0));
  for (size_t i = 0; i < out.size(); ++i) out[i] = values(order(i));
  return out;
}

}  // namespace

Derivatives lambda_gradients(In1<double> scores, In1<double> rank_by, In1<double> gains, In1<double> ideal,
                             In1<Index> order, In1<Index> indptr, double sigmoid, Index truncation, bool norm,
                             bool with_loss, int n_threads) {
  const Index n_lists = require_lists(indptr, scores.shape(0));
  require(rank_by.shape(0) == scores.shape(0) && gains.shape(0) == scores.shape(0) &&
              static_cast<Index>(ideal.shape(0)) == n_lists,
          "rank_by and gains must have one entry a score, ideal one a list");
  require_finite(scores, "scores");
  require_finite(rank_by, "rank_by");
  require_finite(gains, "gains");
  require_permutation(order, scores.shape(0));
  require(sigmoid > 0 && truncation >= 1, "sigmoid and truncation must be positive");
  std::vector<double> grad(scores.shape(0), 0.0), hess(grad.size(), 0.0);
  const std::vector<double> discount = discounts(indptr), s = in_order(scores, order), key = in_order(rank_by, order);
  const double loss = sum_over_lists<RankedList>(indptr, n_threads, [&](RankedList& list, Index q, Index lo, Index n) {
    if (n < 2 || !(ideal(q) > 0)) return 0.0;
    list.sort(s.data() + lo, key.data() + lo, gains.data() + lo, n);
    const auto [least, greatest] = std::minmax_element(list.score.begin(), list.score.end());
    const bool by_distance = norm && *least != *greatest;
    for (Index i = 0; i < std::min(n - 1, truncation); ++i)
      list.add_pairs(i, 1.0 / ideal(q), sigmoid, by_distance, with_loss, discount);
    const double factor = norm && list.total > 0 ? std::log2(1 + list.total) / list.total : 1.0;
    for (Index i = 0; i < n; ++i) {
      const Index row = order(lo + list.order[i]);
      grad[row] = factor * list.grad[i];
      hess[row] = factor * list.hess[i];
    }
    return factor * list.loss;
  });
  return {loss, to_array(std::move(grad)), to_array(std::move(hess))};
}

Array1<double> ideal_dcg(In1<double> gains, In1<Index> indptr, Index truncation, int n_threads) {
  const Index n = require_lists(indptr, gains.shape(0));
  require_finite(gains, "gains");
  require(truncation >= 1, "truncation must be at least 1");
  std::vector<double> out(n, 0.0);
  const auto discount = discounts(indptr);
  sum_over_lists<std::vector<double>>(indptr, n_threads, [&](auto& sorted, Index q, Index first, Index size) {
    sorted.assign(gains.data() + first, gains.data() + first + size);
    std::sort(sorted.begin(), sorted.end(), std::greater<>());
    for (Index i = 0; i < std::min(truncation, size); ++i) out[q] += sorted[i] * discount[i];
    return 0.0;
  });
  return to_array(std::move(out));
}

Array1<double> list_ndcg(In1<double> scores, In1<double> gains, In1<double> ideal, In1<Index> order,
                         In1<Index> indptr, Index truncation, int n_threads) {
  const Index n_lists = require_lists(indptr, scores.shape(0));
  require(gains.shape(0) == scores.shape(0) && static_cast<Index>(ideal.shape(0)) == n_lists,
          "gains must have one entry a score, ideal one a list");
  require_finite(scores, "scores");
  require_permutation(order, scores.shape(0));
  require(truncation >= 1, "truncation must be at least 1");
  std::vector<double> out(n_lists, std::numeric_limits<double>::quiet_NaN());
  const std::vector<double> discount = discounts(indptr), scores_in_order = in_order(scores, order);
  sum_over_lists<std::vector<Index>>(indptr, n_threads, [&](auto& by_score, Index q, Index lo, Index size) {
    if (!(ideal(q) > 0)) return 0.0;
    const double* s = scores_in_order.data() + lo;
    sort_descending(s, size, by_score);
    double dcg = 0;
    for (Index i = 0; i < std::min(size, truncation);) {
      double gain = 0, discounted = 0;
      Index j = i;
      for (; j < size && s[by_score[j]] == s[by_score[i]]; ++j) {
        gain += gains(lo + by_score[j]);
        if (j < truncation) discounted += discount[j];
      }
      dcg += gain / static_cast<double>(j - i) * discounted;
      i = j;
    }
    out[q] = dcg / ideal(q);
    return 0.0;
  });
  return to_array(std::move(out));
}

Array2<double> list_quality(In1<double> scores, In1<float> gains, In1<Index> indptr, int n_threads) {
  const Index n_lists = require_lists(indptr, scores.shape(0));
  require(gains.shape(0) == scores.shape(0), "gains must have one entry a score");
  require_finite(scores, "scores");
  require_finite(gains, "gains");
  std::vector<double> out(n_lists * 3, std::numeric_limits<double>::quiet_NaN());
  sum_over_lists<Scratch>(indptr, n_threads, [&](Scratch& work, Index list, Index first, Index n) {
    const double* s = scores.data() + first;
    const float* gain = gains.data() + first;
    if (std::none_of(gain, gain + n, [](float g) { return g > 0; })) return 0.0;
    sort_descending(s, n, work.order);
    const std::vector<Index>& order = work.order;
    std::vector<float>& ideal = work.grades;
    ideal.assign(gain, gain + n);
    std::sort(ideal.begin(), ideal.end(), std::greater<>());
    double precision = 0, misordered = 0, dcg = 0, best = 0, relevant = 0, irrelevant = 0;
    for (Index begin = 0, end = 0; begin < n; begin = end) {  // groups of equal scores
      double hits = 0;
      for (; end < n && s[order[end]] == s[order[begin]]; ++end) {
        const double discount = 1.0 / std::log2(static_cast<double>(end) + 2.0);
        hits += gain[order[end]] > 0;
        dcg += gain[order[end]] * discount;
        best += ideal[end] * discount;
      }
      const double misses = static_cast<double>(end - begin) - hits;
      relevant += hits;
      precision += hits * relevant / static_cast<double>(end);
      misordered += hits * (irrelevant + 0.5 * misses);
      irrelevant += misses;
    }
    double* const of_list = out.data() + list * 3;
    of_list[0] = precision / relevant;
    of_list[1] = dcg / best;
    of_list[2] = irrelevant > 0 ? misordered / (relevant * irrelevant) : 0.0;
    return 0.0;
  });
  return to_array(std::move(out), n_lists, 3);
}

}  // namespace metarank
