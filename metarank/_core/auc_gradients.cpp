// How `auc_gradients` sums over all pairs in O(n log n).
//
// A sample is ordered by its target and cut in two at a grade, again and again. At a cut, with m the greatest grade
// below it,
//
//   c_ij = (y_i - m) + (m - y_j)        two terms that are never negative,
//
// so all pairs across it need only sums over one side of phi and of phi times a weight. Hinge: running sums along both
// sides, sorted by score, give these exactly. Logistic: few pairs are taken one by one; many go over a grid of scores of
// spacing 1/32. A score is deposited on the four nodes around it with cubic weights, nodes meet nodes, and the sums are
// read off with the same weights, each step with a relative error of about 1e-8.
#include <array>
#include <limits>

#include "list_losses.h"
#include "lists.h"
#include "simd.h"

namespace metarank {

namespace {

using Index = int64_t;

constexpr double kSpacing = 1.0 / 32;
constexpr Index kReach = 37 * 32;  // nodes; exp(-37) is below the rounding of 1
constexpr Index kTile = 256;       // nodes of output at a time
constexpr Index kLeaf = 64;        // rows whose pairs are not cut any further
constexpr Index kChunk = 1 << 16;  // rows deposited into one grid
constexpr double kMaxScore = 1e15;

// Rows in the order of their target, within one group.
struct Sample {
  const double *s, *y;
  Index n;
  bool difference, with_loss;
  double *grad, *hess;       // sums over pairs; the caller divides by their cost
  std::vector<Index> first;  // where each grade begins, and n

  void find_grades() {
    first.clear();
    for (Index i = 0; i < n; ++i)
      if (i == 0 || y[i] != y[i - 1]) first.push_back(i);
    first.push_back(n);
  }
  Index n_grades() const { return static_cast<Index>(first.size()) - 1; }
  // The grade whose beginning is closest to the middle of grades [a, b).
  Index middle_grade(Index a, Index b) const {
    const Index middle = (first[a] + first[b]) / 2;
    Index c = std::lower_bound(first.begin() + a + 1, first.begin() + b, middle) - first.begin();
    c = std::min(c, b - 1);
    if (c > a + 1 && middle - first[c - 1] < first[c] - middle) --c;
    return c;
  }
  // Total cost of the pairs: sum over i of y_i (pairs won - pairs lost), or their number.
  double total_cost() const {
    double total = 0;
    for (Index g = 0; g < n_grades(); ++g) {
      const auto size = static_cast<double>(first[g + 1] - first[g]);
      const auto below = static_cast<double>(first[g]), above = static_cast<double>(n - first[g + 1]);
      total += difference ? (y[first[g]] - y[0]) * size * (below - above) : size * below;
    }
    return total;
  }
};

// c_ij = u(i) + l(j) across one cut.
struct Cut {
  const Sample& d;
  double m;
  Cut(const Sample& sample, Index mid) : d(sample), m(sample.y[mid - 1]) {}
  double u(Index i) const { return d.difference ? d.y[i] - m : 1.0; }
  double l(Index j) const { return d.difference ? m - d.y[j] : 0.0; }
};

double log1p_exp(double z) { return std::max(z, 0.0) + std::log1p(std::exp(-std::fabs(z))); }

// --- logistic, pair by pair -------------------------------------------------

// Row i against rows [0, n) below it; e = exp(score), so that a pair costs a division and no exponential. Eight partial
// sums, folded in one order.
METARANK_KERNEL void logistic_row(double ei, double yi, bool difference, const double* e, const double* y,
                                  double* grad, double* hess, Index n, double* grad_i, double* hess_i) {
  double sum_g[8] = {0}, sum_h[8] = {0};
  const auto add = [&](Index j, Index k) METARANK_LAMBDA_INLINE {
    const double c = difference ? yi - y[j] : 1.0;
    const double inverse = 1.0 / (ei + e[j]);
    const double g = c * (e[j] * inverse), h = g * (ei * inverse);
    grad[j] += g;
    hess[j] += h;
    sum_g[k] += g;
    sum_h[k] += h;
  };
  Index j = 0;
  for (; j + 8 <= n; j += 8)
    for (Index k = 0; k < 8; ++k) add(j + k, k);
  for (Index k = 0; j < n; ++j, ++k) add(j, k);
  *grad_i -= fold_lanes(sum_g);
  *hess_i += fold_lanes(sum_h);
}

// The same where the exponentials of the scores would overflow.
void logistic_row_far(const Sample& d, Index i, Index lo, Index hi) {
  for (Index j = lo; j < hi; ++j) {
    const double c = d.difference ? d.y[i] - d.y[j] : 1.0, z = d.s[i] - d.s[j];
    const double e = std::exp(-std::fabs(z));
    const double g = c * (z >= 0 ? e : 1.0) / (1.0 + e), h = c * e / ((1.0 + e) * (1.0 + e));
    d.grad[i] -= g;
    d.grad[j] += g;
    d.hess[i] += h;
    d.hess[j] += h;
  }
}

// --- logistic, over a grid --------------------------------------------------

// Kernels at the difference of two nodes, output minus input, as far as a tile sees.
struct Kernels {
  static constexpr Index kHalf = kReach + kTile;
  std::vector<double> won, lost, bend, loss;  // sigma(-z), sigma(z), sigma(z) sigma(-z), log(1 + exp(-z))
  Kernels() {
    for (Index d = -kHalf; d <= kHalf; ++d) {
      const double z = static_cast<double>(d) * kSpacing, e = std::exp(-std::fabs(z));
      won.push_back((z >= 0 ? e : 1.0) / (1.0 + e));
      lost.push_back((z >= 0 ? 1.0 : e) / (1.0 + e));
      bend.push_back(e / ((1.0 + e) * (1.0 + e)));
      loss.push_back(log1p_exp(-z));
    }
  }
};

// The first of the four nodes around each score, and where it stands between the second and the third.
struct Grid {
  std::vector<int32_t> at;  // empty where there are few scores, or much more nodes than scores
  std::vector<double> fraction;

  void build(const double* s, Index n) {
    at.clear();
    if (n <= 4 * kLeaf) return;
    const auto [least, greatest] = std::minmax_element(s, s + n);
    const double lowest = std::floor(*least / kSpacing);
    if (std::floor(*greatest / kSpacing) - lowest > 8.0 * static_cast<double>(n) + 65536) return;
    at.resize(n);
    fraction.resize(n);
    for (Index i = 0; i < n; ++i) {
      const double x = s[i] / kSpacing, below = std::floor(x);
      at[i] = static_cast<int32_t>(below - lowest);
      fraction[i] = x - below;
    }
  }
  // Lagrange's cubic through the nodes -1, 0, 1, 2.
  std::array<double, 4> weights(Index i) const {
    const double t = fraction[i], a = t + 1, b = t - 1, c = t - 2;
    return {-t * b * c / 6, a * b * c / 2, -a * t * c / 2, a * t * b / 6};
  }
};

enum class Far { none, above, below, distance };  // which nodes out of reach count: as 1, or those above by distance

// Sums of the mass at all nodes, seen from every node through a kernel; empty where there is no mass.
std::vector<double> convolve(const std::vector<double>& mass, const std::vector<double>& kernel, Far far,
                             int n_threads) {
  const auto n = static_cast<Index>(mass.size());
  std::vector<double> out(n, 0.0), sum(n + 1, 0.0), moment(n + 1, 0.0);
  for (Index q = 0; q < n && far == Far::below; ++q) sum[q + 1] = sum[q] + mass[q];
  for (Index q = n; q-- > 0 && far != Far::below;) {
    sum[q] = sum[q + 1] + mass[q];
    moment[q] = moment[q + 1] + mass[q] * (static_cast<double>(q) * kSpacing);
  }
  const double* centre = kernel.data() + Kernels::kHalf;
  parallel_for(n, n_threads, kTile, [&](Index a, Index b, int) {
    const Index from = std::max<Index>(0, a - kReach), to = std::min(n, b + kReach);
    for (Index q = from; q < to; ++q)
      if (mass[q] != 0)
        by_level<add_scaled<double, double>>(out.data() + a, mass[q], centre + (a - q), b - a);
    for (Index p = a; p < b; ++p) {
      if (far == Far::distance) out[p] += moment[to] - (static_cast<double>(p) * kSpacing) * sum[to];
      if (far == Far::above) out[p] += sum[to];
      if (far == Far::below) out[p] += sum[from];
    }
  });
  return out;
}

class Logistic {
 public:
  // The loss of all pairs, level by level: blocks of a level have no rows in common.
  double solve(const Sample& d, int n_threads) {
    prepare(d);
    struct Block {
      Index a, b, c;  // grades [a, c) below and [c, b) above; c = a where all pairs of [a, b) are meant
    };
    double loss = 0;
    std::vector<Block> level, next;
    const auto add = [&](Index a, Index b) {
      if (b - a < 2) return;
      next.push_back({a, b, d.first[b] - d.first[a] <= kLeaf ? a : d.middle_grade(a, b)});
    };
    for (add(0, d.n_grades()); !next.empty();) {
      level.swap(next);
      next.clear();
      const auto n = static_cast<Index>(level.size());
      std::vector<double> losses(n, 0.0);
      const int inner = n == 1 ? n_threads : 1;
      parallel_for(n, n_threads, std::max<Index>(1, n / 256), [&](Index begin, Index end, int) {
        for (Index k = begin; k < end; ++k) {
          const auto& [a, b, c] = level[k];
          losses[k] = c == a ? leaf(d, a, b) : across(d, d.first[a], d.first[c], d.first[b], inner);
        }
      });
      for (const double value : losses) loss += value;
      for (const auto& [a, b, c] : level)
        if (c != a) {
          add(a, c);
          add(c, b);
        }
    }
    return loss;
  }

 private:
  // Ones and weights of rows, at each node; either may be missing.
  struct Mass {
    std::vector<double> ones, weights;
  };

  std::vector<double> e_;  // exp(score), empty where it would overflow
  Grid grid_;

  void prepare(const Sample& d) {
    const auto [least, greatest] = std::minmax_element(d.s, d.s + d.n);
    e_.clear();
    if (*greatest - *least <= 600) {
      const double centre = 0.5 * (*least + *greatest);
      e_.resize(d.n);
      for (Index i = 0; i < d.n; ++i) e_[i] = std::exp(d.s[i] - centre);
    }
    grid_.build(d.s, d.n);
  }

  // Row i with all rows [lo, hi), which have lower grades.
  double row(const Sample& d, Index i, Index lo, Index hi) const {
    if (e_.empty())
      logistic_row_far(d, i, lo, hi);
    else
      by_level<logistic_row>(e_[i], d.y[i], d.difference, e_.data() + lo, d.y + lo, d.grad + lo, d.hess + lo, hi - lo,
                             d.grad + i, d.hess + i);
    double loss = 0;
    for (Index j = lo; j < hi && d.with_loss; ++j)
      loss += (d.difference ? d.y[i] - d.y[j] : 1.0) * log1p_exp(d.s[j] - d.s[i]);
    return loss;
  }

  double leaf(const Sample& d, Index a, Index b) const {
    double loss = 0;
    for (Index g = a + 1; g < b; ++g)
      for (Index i = d.first[g]; i < d.first[g + 1]; ++i) loss += row(d, i, d.first[a], d.first[g]);
    return loss;
  }

  double across(const Sample& d, Index lo, Index mid, Index hi, int n_threads) const {
    if (!grid_.at.empty()) {
      const auto [least, greatest] = std::minmax_element(grid_.at.begin() + lo, grid_.at.begin() + hi);
      const Index first = *least, n_nodes = *greatest + 4 - first;
      const double meetings = static_cast<double>(n_nodes) * static_cast<double>(std::min(n_nodes, 2 * kReach));
      const double pairs = static_cast<double>(mid - lo) * static_cast<double>(hi - mid);
      const double price = d.with_loss ? 10 : 1;  // of a pair: its loss takes a logarithm
      if (price * pairs > 2 * meetings + 40 * static_cast<double>(hi - lo))
        return over_grid(d, lo, mid, hi, first, n_nodes, n_threads);
    }
    double loss = 0;
    for (Index i = mid; i < hi; ++i) loss += row(d, i, lo, mid);
    return loss;
  }

  // The sum of weight(i) of rows [lo, hi) at each node. Chunks of rows have grids of their own, summed in order: threads
  // do not show.
  template <typename Weight>
  std::vector<double> deposit(Index lo, Index hi, Index first, Index n_nodes, int n_threads, Weight weight) const {
    const Index size = std::max(kChunk, 4 * n_nodes), n_chunks = (hi - lo + size - 1) / size;
    std::vector<std::vector<double>> chunks(n_chunks);
    parallel_for(n_chunks, n_threads, 1, [&](Index k, Index, int) {
      chunks[k].assign(n_nodes, 0.0);
      for (Index i = lo + k * size; i < std::min(hi, lo + (k + 1) * size); ++i) {
        const auto w = grid_.weights(i);
        const double value = weight(i);
        double* const node = chunks[k].data() + (grid_.at[i] - first);
        for (int a = 0; a < 4; ++a) node[a] += value * w[a];
      }
    });
    for (Index k = 1; k < n_chunks; ++k)
      for (Index p = 0; p < n_nodes; ++p) chunks[0][p] += chunks[k][p];
    return std::move(chunks[0]);
  }

  double over_grid(const Sample& d, Index lo, Index mid, Index hi, Index first, Index n_nodes, int n_threads) const {
    static const Kernels table;
    const Cut cut(d, mid);
    const auto one = [](Index) { return 1.0; };
    const auto u = [&](Index i) { return cut.u(i); };
    const auto l = [&](Index j) { return cut.l(j); };
    Mass below{deposit(lo, mid, first, n_nodes, n_threads, one), {}};
    Mass above{{}, deposit(mid, hi, first, n_nodes, n_threads, u)};
    if (cut.l(lo) != 0) {  // some row below the cut carries a weight
      below.weights = deposit(lo, mid, first, n_nodes, n_threads, l);
      above.ones = deposit(mid, hi, first, n_nodes, n_threads, one);
    }
    // The derivatives of rows [begin, end) of weights `own` by the mass of the other side.
    const auto meet = [&](Index begin, Index end, const Mass& mass, const std::vector<double>& slope, Far far,
                          double sign, const auto& own) {
      const std::vector<double> sums[] = {
          convolve(mass.ones, slope, far, n_threads), convolve(mass.weights, slope, far, n_threads),
          convolve(mass.ones, table.bend, Far::none, n_threads),
          convolve(mass.weights, table.bend, Far::none, n_threads)};
      parallel_for(end - begin, n_threads, kChunk, [&](Index from, Index to, int) {
        for (Index i = begin + from; i < begin + to; ++i) {
          const auto w = grid_.weights(i);
          double value[4] = {0};
          for (int k = 0; k < 4; ++k)
            for (Index a = 0; a < 4 && !sums[k].empty(); ++a) value[k] += w[a] * sums[k][grid_.at[i] - first + a];
          d.grad[i] += sign * (own(i) * value[0] + value[1]);
          d.hess[i] += std::max(own(i) * value[2] + value[3], 0.0);
        }
      });
    };
    meet(mid, hi, below, table.won, Far::above, -1, u);
    meet(lo, mid, above, table.lost, Far::below, 1, l);
    if (!d.with_loss) return 0;
    double loss = 0;
    const std::vector<double> by_ones = convolve(below.ones, table.loss, Far::distance, n_threads),
                              by_weights = convolve(below.weights, table.loss, Far::distance, n_threads);
    for (Index p = 0; p < n_nodes; ++p) loss += above.weights[p] * by_ones[p];
    for (size_t p = 0; p < by_weights.size(); ++p) loss += above.ones[p] * by_weights[p];
    return loss;
  }
};

// --- hinge and the area itself, in the order of scores ----------------------

class Sweep {
 public:
  // step: the loss is the share of pairs in the wrong order, a tie one half, and has no derivatives.
  double solve(const Sample& d, bool step) {
    step_ = step;
    keyed_.resize(d.n);
    for (Index i = 0; i < d.n; ++i) keyed_[i] = {d.s[i], i};
    std::sort(keyed_.begin(), keyed_.end());
    centre_ = keyed_[d.n / 2].first;
    id_.resize(keyed_.size());
    above_.resize(keyed_.size());
    for (Index i = 0; i < d.n; ++i) id_[i] = keyed_[i].second;
    return pairs_of(d, 0, d.n_grades());
  }

 private:
  bool step_ = false;
  double centre_ = 0;
  std::vector<std::pair<double, Index>> keyed_;
  std::vector<Index> id_, above_;  // rows by ascending score, within the grades at hand

  // The loss of all pairs of grades [a, b), whose rows stand in order in their part of id_.
  double pairs_of(const Sample& d, Index a, Index b) {
    if (b - a == 1) return 0;
    const Index c = d.middle_grade(a, b), lo = d.first[a], mid = d.first[c], hi = d.first[b];
    Index below = lo, n_above = 0;  // rows stand by grade: a row above the cut has a number from mid on
    for (Index k = lo; k < hi; ++k) {
      if (id_[k] < mid)
        id_[below++] = id_[k];
      else
        above_[n_above++] = id_[k];
    }
    std::copy(above_.begin(), above_.begin() + n_above, id_.begin() + mid);
    const double loss = step_ ? area_across(d, lo, mid, hi) : hinge_across(d, lo, mid, hi);
    const double of_lower = pairs_of(d, a, c);
    return loss + of_lower + pairs_of(d, c, b);
  }

  double hinge_across(const Sample& d, Index lo, Index mid, Index hi) const {
    const Cut cut(d, mid);
    double loss = 0, n = 0, l = 0, s = 0, ls = 0;
    for (Index k = hi, next = mid; k-- > mid;) {  // best first: rows below that are not a margin behind
      const Index i = id_[k];
      for (; next > lo && d.s[i] - d.s[id_[next - 1]] < 1; --next) {
        const Index j = id_[next - 1];
        const double weight = cut.l(j), score = d.s[j] - centre_;
        n += 1;
        l += weight;
        s += score;
        ls += weight * score;
      }
      const double u = cut.u(i), gap = 1 - (d.s[i] - centre_);
      d.grad[i] -= u * n + l;
      loss += u * (gap * n + s) + (gap * l + ls);
    }
    double m = 0, u = 0;
    for (Index k = lo, next = mid; k < mid; ++k) {  // worst first: rows above that are not a margin ahead
      const Index j = id_[k];
      for (; next < hi && d.s[id_[next]] - d.s[j] < 1; ++next) {
        m += 1;
        u += cut.u(id_[next]);
      }
      d.grad[j] += cut.l(j) * m + u;
    }
    double all_l = 0, all_u = 0;
    for (Index j = lo; j < mid; ++j) all_l += cut.l(j);
    for (Index i = mid; i < hi; ++i) all_u += cut.u(i);
    for (Index i = mid; i < hi; ++i) d.hess[i] += cut.u(i) * static_cast<double>(mid - lo) + all_l;
    for (Index j = lo; j < mid; ++j) d.hess[j] += cut.l(j) * static_cast<double>(hi - mid) + all_u;
    return loss;
  }

  double area_across(const Sample& d, Index lo, Index mid, Index hi) const {
    const Cut cut(d, mid);
    double loss = 0, n = 0, l = 0, tied_n = 0, tied_l = 0;  // rows below with a greater score, with the same
    for (Index k = hi, next = mid; k-- > mid;) {
      const Index i = id_[k];
      if (k + 1 == hi || d.s[id_[k + 1]] != d.s[i]) {
        n += tied_n;
        l += tied_l;
        tied_n = tied_l = 0;
        for (; next > lo && d.s[id_[next - 1]] > d.s[i]; --next) {
          n += 1;
          l += cut.l(id_[next - 1]);
        }
        for (; next > lo && d.s[id_[next - 1]] == d.s[i]; --next) {
          tied_n += 1;
          tied_l += cut.l(id_[next - 1]);
        }
      }
      loss += cut.u(i) * (n + 0.5 * tied_n) + (l + 0.5 * tied_l);
    }
    return loss;
  }
};

// --- groups -----------------------------------------------------------------

void require_groups(const In1<double>& scores, const In1<double>& target, const In1<Index>& order,
                    const In1<Index>& indptr, const In1<double>& costs) {
  const Index n_groups = require_lists(indptr, scores.shape(0));
  require(target.shape(0) == scores.shape(0), "target must have one entry a score");
  require_finite(target, "target");
  require(costs.shape(0) == 0 || static_cast<Index>(costs.shape(0)) == n_groups,
          "costs must have one entry a group, or none");
  for (size_t g = 0; g < costs.shape(0); ++g)
    require(costs(g) > 0 && std::isfinite(costs(g)), "costs must be positive and finite");
  for (size_t i = 0; i < scores.shape(0); ++i)
    require(std::fabs(scores(i)) <= kMaxScore, "scores must be finite and within 1e15");
  require_permutation(order, scores.shape(0));
  for (Index g = 0; g < n_groups; ++g)
    for (Index i = indptr(g) + 1; i < indptr(g + 1); ++i)
      require(target(order(i - 1)) <= target(order(i)), "order must sort each group by its target");
}

// What the groups are solved by: one method, and the sample it looks at.
struct Solver {
  Logistic logistic;
  Sweep sweep;
  Sample sample;
};

}  // namespace

Derivatives auc_gradients(In1<double> scores, In1<double> target, In1<Index> order, In1<Index> indptr,
                          In1<double> costs, const std::string& surrogate, bool difference, bool with_loss,
                          int n_threads) {
  const bool is_logistic = surrogate == "logistic", is_step = surrogate == "step";
  require(is_logistic || is_step || surrogate == "hinge", "surrogate must be 'logistic', 'hinge' or 'step'");
  require_groups(scores, target, order, indptr, costs);
  const size_t n = scores.shape(0), n_derivatives = is_step ? 0 : n;
  std::vector<double> s(n), y(n), grad(n_derivatives, 0.0), hess(n_derivatives, 0.0);
  for (size_t i = 0; i < n; ++i) {
    s[i] = scores(order(i));
    y[i] = target(order(i));
  }
  const bool one_group = indptr.shape(0) == 2;
  std::vector<char> counts(indptr.shape(0) - 1, 0);
  double loss = sum_over_lists<Solver>(indptr, one_group ? 1 : n_threads, [&](Solver& by, Index g, Index lo, Index size) {
    if (size < 2 || y[lo] == y[lo + size - 1]) return 0.0;
    Sample& d = by.sample;
    d = {s.data() + lo,    y.data() + lo,    size, difference, with_loss, is_step ? nullptr : grad.data() + lo,
         is_step ? nullptr : hess.data() + lo, std::move(d.first)};
    d.find_grades();
    const double total = is_logistic ? by.logistic.solve(d, one_group ? n_threads : 1) : by.sweep.solve(d, is_step);
    const double cost = costs.shape(0) == 0 ? d.total_cost() : costs(g);
    counts[g] = 1;
    for (Index i = 0; i < size && !is_step; ++i) {
      d.grad[i] /= cost;
      d.hess[i] /= cost;
    }
    return total / cost;
  });
  double n_counted = static_cast<double>(std::count(counts.begin(), counts.end(), 1));
  require(n_counted > 0, "target must differ between two rows of a group");
  if (costs.shape(0) > 0) n_counted = 1;
  s.resize(n_derivatives);
  y.resize(n_derivatives);
  for (size_t i = 0; i < n_derivatives; ++i) {  // back to the caller's order
    s[order(i)] = grad[i] / n_counted;
    y[order(i)] = hess[i] / n_counted;
  }
  return {loss / n_counted, to_array(std::move(s)), to_array(std::move(y))};
}

}  // namespace metarank
