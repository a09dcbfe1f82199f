#include "lambda_gradients.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "arrays.h"
#include "parallel.h"
#include "elementary.h"
#include "lists.h"
#include "simd.h"

namespace metarank {

namespace {

using Index = std::int64_t;

// 1 / (1 + exp(x)) at 2^20 points of |x| <= 25, the value of the point below:
// LightGBM's table, so that boosting on these gradients grows LightGBM's trees.
class SigmoidTable {
 public:
  SigmoidTable() : value_(kPoints) {
    for (Index i = 0; i < kPoints; ++i) value_[i] = 1.0 / (1.0 + std::exp(static_cast<double>(i) / kScale - kLimit));
  }
  double at(double x) const {
    if (x <= -kLimit) return value_.front();
    if (x >= kLimit) return value_.back();
    return value_[static_cast<std::size_t>((x + kLimit) * kScale)];
  }

 private:
  static constexpr Index kPoints = 1 << 20;
  static constexpr double kLimit = 25, kScale = kPoints / (2 * kLimit);
  std::vector<double> value_;
};

const SigmoidTable& sigmoids() {
  static const SigmoidTable table;
  return table;
}

std::vector<double> discounts(Index n) {
  std::vector<double> out(static_cast<std::size_t>(n));
  for (Index i = 0; i < n; ++i) out[i] = 1.0 / elementary::log2(2.0 + static_cast<double>(i));
  return out;
}

Index longest_list(const In1<Index>& indptr, Index n_lists) {
  Index longest = 0;
  for (Index i = 0; i < n_lists; ++i) longest = std::max(longest, indptr(i + 1) - indptr(i));
  return longest;
}

}  // namespace

Array1<double> ideal_dcg(In1<double> gains, In1<Index> indptr, Index truncation, int n_threads) {
  const Index n = require_lists(indptr, gains.shape(0));
  require_finite(gains, "gains");
  require(truncation >= 1, "truncation must be at least 1");
  std::vector<double> out(static_cast<std::size_t>(n), 0.0);
  const auto discount = discounts(longest_list(indptr, n));
  parallel_for(n, n_threads, 64, [&](Index begin, Index end, int) {
    std::vector<double> sorted;
    for (Index q = begin; q < end; ++q) {
      sorted.assign(gains.data() + indptr(q), gains.data() + indptr(q + 1));
      std::sort(sorted.begin(), sorted.end(), std::greater<>());
      const Index depth = std::min(truncation, static_cast<Index>(sorted.size()));
      for (Index i = 0; i < depth; ++i) out[q] += sorted[i] * discount[i];
    }
  });
  return to_array(std::move(out));
}

namespace {

struct Ranked {
  std::vector<Index> order;
  std::vector<double> score, gain, grad, hess;

  // Ids 0..n-1 by descending key, ties in the order of the list.
  void sort(const double* key, Index n) {
    order.resize(static_cast<std::size_t>(n));
    std::iota(order.begin(), order.end(), Index{0});
    const auto better = [key](Index a, Index b) { return key[a] != key[b] ? key[a] > key[b] : a < b; };
    std::sort(order.begin(), order.end(), better);
  }
};

struct Settings {
  double sigmoid;
  Index truncation;
  bool norm, with_loss;
};

// Row i against the rows ranked below it that differ in gain, side by side so
// that the loops run wide. `sign` is +1 where i is the better one.
struct PairRow {
  std::vector<Index> id;
  std::vector<double> gain, score, discount, sign, weight, sigma, lambda, bend;

  void resize(Index n) {
    id.resize(static_cast<std::size_t>(n));
    for (auto* column : {&gain, &score, &discount, &sign, &weight, &sigma, &lambda, &bend}) column->resize(id.size());
  }
};

// Weights of m pairs, and how far the better one is ahead, in `sigma`.
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

double lambda_list(const double* s, const double* key, const double* gain, double ideal, Index n, const Settings& set,
                   const std::vector<double>& discount, double* grad, double* hess, Ranked& work, PairRow& row) {
  const SigmoidTable& table = sigmoids();
  work.sort(key, n);
  work.score.resize(work.order.size());
  work.gain.resize(work.order.size());
  work.grad.assign(work.order.size(), 0.0);
  work.hess.assign(work.order.size(), 0.0);
  row.resize(n);
  for (Index i = 0; i < n; ++i) {
    work.score[i] = s[work.order[i]];
    work.gain[i] = gain[work.order[i]];
  }
  const auto [least, greatest] = std::minmax_element(work.score.begin(), work.score.end());
  const bool by_distance = set.norm && *least != *greatest;
  double total = 0, loss = 0;
  for (Index i = 0; i < std::min(n - 1, set.truncation); ++i) {
    const double gain_i = work.gain[i];
    Index m = 0;
    for (Index j = i + 1; j < n; ++j) {
      row.id[m] = j;
      row.gain[m] = work.gain[j];
      row.score[m] = work.score[j];
      row.discount[m] = discount[j];
      m += work.gain[j] != gain_i;
    }
    double* ahead = row.sigma.data();
    by_level<weigh_pairs>(gain_i, work.score[i], discount[i], ideal, by_distance, m, row.gain.data(), row.score.data(),
                          row.discount.data(), row.sign.data(), row.weight.data(), ahead);
    if (set.with_loss)
      for (Index k = 0; k < m; ++k) {
        const double z = set.sigmoid * ahead[k];
        loss += row.weight[k] * (std::max(-z, 0.0) + std::log1p(std::exp(-std::fabs(z))));
      }
    for (Index k = 0; k < m; ++k) row.sigma[k] = table.at(set.sigmoid * ahead[k]);
    by_level<slope_pairs>(set.sigmoid, m, row.sign.data(), row.weight.data(), row.sigma.data(), row.lambda.data(),
                          row.bend.data());
    double grad_i = 0, hess_i = 0;
    for (Index k = 0; k < m; ++k) {
      const Index j = row.id[k];
      work.grad[j] += row.lambda[k];
      work.hess[j] += row.bend[k];
      grad_i -= row.lambda[k];
      hess_i += row.bend[k];
      total += 2 * std::fabs(row.lambda[k]);
    }
    work.grad[i] += grad_i;
    work.hess[i] += hess_i;
  }
  const double factor = set.norm && total > 0 ? std::log2(1 + total) / total : 1.0;
  for (Index i = 0; i < n; ++i) {
    grad[work.order[i]] = factor * work.grad[i];
    hess[work.order[i]] = factor * work.hess[i];
  }
  return factor * loss;
}

void require_order(const In1<Index>& order, Index n) {
  require(static_cast<Index>(order.shape(0)) == n, "order must have one entry a score");
  std::vector<char> seen(static_cast<std::size_t>(n), 0);
  for (Index i = 0; i < n; ++i) {
    require(order(i) >= 0 && order(i) < n && !seen[order(i)], "order must be a permutation");
    seen[order(i)] = 1;
  }
}

}  // namespace

std::tuple<double, Array1<double>, Array1<double>> lambda_gradients(In1<double> scores, In1<double> rank_by,
                                                                    In1<double> gains, In1<double> ideal,
                                                                    In1<Index> order, In1<Index> indptr,
                                                                    double sigmoid, Index truncation, bool norm,
                                                                    bool with_loss, int n_threads) {
  const Index n_lists = require_lists(indptr, scores.shape(0));
  const auto n = static_cast<Index>(scores.shape(0));
  require(rank_by.shape(0) == scores.shape(0), "rank_by must have one entry a score");
  require(gains.shape(0) == scores.shape(0), "gains must have one entry a score");
  require(static_cast<Index>(ideal.shape(0)) == n_lists, "ideal must have one entry a list");
  require_finite(scores, "scores");
  require_finite(rank_by, "rank_by");
  require_finite(gains, "gains");
  require_order(order, n);
  require(sigmoid > 0, "sigmoid must be positive");
  require(truncation >= 1, "truncation must be at least 1");
  const Settings set{sigmoid, truncation, norm, with_loss};
  std::vector<double> grad(static_cast<std::size_t>(n), 0.0), hess(grad.size(), 0.0);
  double loss = 0;
  const auto discount = discounts(longest_list(indptr, n_lists));
  std::vector<double> losses(static_cast<std::size_t>(n_lists), 0.0);
  parallel_for(n_lists, n_threads, 64, [&](Index begin, Index end, int) {
    Ranked work;
    PairRow row;
    std::vector<double> s, key, g, h;
    for (Index q = begin; q < end; ++q) {
      const Index lo = indptr(q), size = indptr(q + 1) - lo;
      if (size < 2 || !(ideal(q) > 0)) continue;
      s.resize(static_cast<std::size_t>(size));
      key.resize(s.size());
      g.resize(s.size());
      h.resize(s.size());
      for (Index i = 0; i < size; ++i) {
        s[i] = scores(order(lo + i));
        key[i] = rank_by(order(lo + i));
      }
      losses[q] = lambda_list(s.data(), key.data(), gains.data() + lo, 1.0 / ideal(q), size, set, discount, g.data(),
                              h.data(), work, row);
      for (Index i = 0; i < size; ++i) {
        grad[order(lo + i)] = g[i];
        hess[order(lo + i)] = h[i];
      }
    }
  });
  for (const double value : losses) loss += value;
  return {loss, to_array(std::move(grad)), to_array(std::move(hess))};
}

Array1<double> list_ndcg(In1<double> scores, In1<double> gains, In1<double> ideal, In1<Index> order,
                         In1<Index> indptr, Index truncation, int n_threads) {
  const Index n_lists = require_lists(indptr, scores.shape(0));
  require(gains.shape(0) == scores.shape(0), "gains must have one entry a score");
  require(static_cast<Index>(ideal.shape(0)) == n_lists, "ideal must have one entry a list");
  require_finite(scores, "scores");
  require_order(order, static_cast<Index>(scores.shape(0)));
  require(truncation >= 1, "truncation must be at least 1");
  std::vector<double> out(static_cast<std::size_t>(n_lists), std::numeric_limits<double>::quiet_NaN());
  const auto discount = discounts(longest_list(indptr, n_lists));
  parallel_for(n_lists, n_threads, 64, [&](Index begin, Index end, int) {
    Ranked work;
    std::vector<double> s;
    for (Index q = begin; q < end; ++q) {
      const Index lo = indptr(q), size = indptr(q + 1) - lo;
      if (!(ideal(q) > 0)) continue;
      s.resize(static_cast<std::size_t>(size));
      for (Index i = 0; i < size; ++i) s[i] = scores(order(lo + i));
      work.sort(s.data(), size);
      double dcg = 0;
      for (Index i = 0; i < std::min(size, truncation);) {
        double gain = 0, discounted = 0;
        Index j = i;
        for (; j < size && s[work.order[j]] == s[work.order[i]]; ++j) {
          gain += gains(lo + work.order[j]);
          if (j < truncation) discounted += discount[j];
        }
        dcg += gain / static_cast<double>(j - i) * discounted;
        i = j;
      }
      out[q] = dcg / ideal(q);
    }
  });
  return to_array(std::move(out));
}

}  // namespace metarank
