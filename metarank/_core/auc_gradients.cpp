#include "auc_gradients.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "arrays.h"
#include "parallel.h"
#include "lists.h"
#include "simd.h"

namespace metarank {

namespace {

using Index = std::int64_t;

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
  double *grad, *hess;  // sums over pairs; the caller divides by their cost
  std::vector<Index> first;  // where each grade begins, and n

  void find_grades() {
    first.clear();
    for (Index i = 0; i < n; ++i)
      if (i == 0 || y[i] != y[i - 1]) first.push_back(i);
    first.push_back(n);
  }
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
    for (std::size_t g = 0; g + 1 < first.size(); ++g) {
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

// Row i against rows [0, n) below it; e = exp(score), so that a pair costs a
// division and no exponential. Eight partial sums, folded in one order.
METARANK_KERNEL void logistic_row(double ei, double yi, bool difference, const double* e, const double* y,
                                  double* grad, double* hess, Index n, double* grad_i, double* hess_i) {
  double sum_g[8] = {0}, sum_h[8] = {0};
  Index j = 0;
  for (; j + 8 <= n; j += 8)
    for (int k = 0; k < 8; ++k) {
      const double c = difference ? yi - y[j + k] : 1.0;
      const double inverse = 1.0 / (ei + e[j + k]);
      const double g = c * (e[j + k] * inverse), h = g * (ei * inverse);
      grad[j + k] += g;
      hess[j + k] += h;
      sum_g[k] += g;
      sum_h[k] += h;
    }
  for (int k = 0; j < n; ++j, ++k) {
    const double c = difference ? yi - y[j] : 1.0;
    const double inverse = 1.0 / (ei + e[j]);
    const double g = c * (e[j] * inverse), h = g * (ei * inverse);
    grad[j] += g;
    hess[j] += h;
    sum_g[k] += g;
    sum_h[k] += h;
  }
  *grad_i -= ((sum_g[0] + sum_g[4]) + (sum_g[2] + sum_g[6])) + ((sum_g[1] + sum_g[5]) + (sum_g[3] + sum_g[7]));
  *hess_i += ((sum_h[0] + sum_h[4]) + (sum_h[2] + sum_h[6])) + ((sum_h[1] + sum_h[5]) + (sum_h[3] + sum_h[7]));
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

double logistic_row_loss(const Sample& d, Index i, Index lo, Index hi) {
  double loss = 0;
  for (Index j = lo; j < hi; ++j) loss += (d.difference ? d.y[i] - d.y[j] : 1.0) * log1p_exp(d.s[j] - d.s[i]);
  return loss;
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

const Kernels& kernels() {
  static const Kernels tables;
  return tables;
}

// The nodes that some score touches, ascending; four follow each other from `at` of a row on.
struct Grid {
  std::vector<Index> node;
  std::vector<std::int32_t> at;
  std::vector<double> fraction;

  void build(const double* s, Index n) {
    std::vector<Index> base(static_cast<std::size_t>(n));
    fraction.resize(static_cast<std::size_t>(n));
    at.resize(static_cast<std::size_t>(n));
    for (Index i = 0; i < n; ++i) {
      const double x = s[i] / kSpacing, below = std::floor(x);
      base[i] = static_cast<Index>(below);
      fraction[i] = x - below;
    }
    const auto [least, greatest] = std::minmax_element(base.begin(), base.end());
    const Index lowest = *least, span = *greatest - lowest + 1;
    node.clear();
    if (span <= 8 * n + 65536) {  // a mark for each possible base
      std::vector<std::int32_t> place(static_cast<std::size_t>(span), 0);
      for (const Index b : base) place[b - lowest] = 1;
      for (Index b = 0; b < span; ++b)
        if (place[b]) place[b] = add_nodes(lowest + b);
      for (Index i = 0; i < n; ++i) at[i] = place[base[i] - lowest];
    } else {
      std::vector<Index> distinct = base;
      std::sort(distinct.begin(), distinct.end());
      distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
      std::vector<std::int32_t> place;
      for (const Index b : distinct) place.push_back(add_nodes(b));
      for (Index i = 0; i < n; ++i)
        at[i] = place[std::lower_bound(distinct.begin(), distinct.end(), base[i]) - distinct.begin()];
    }
  }
  // Nodes b - 1 to b + 2, and where the first of them stands.
  std::int32_t add_nodes(Index b) {
    Index next = b - 1;
    if (!node.empty() && node.back() >= next) next = node.back() + 1;
    for (; next <= b + 2; ++next) node.push_back(next);
    return static_cast<std::int32_t>(node.size()) - 4;
  }
  // Lagrange's cubic through the nodes -1, 0, 1, 2.
  std::array<double, 4> weights(Index i) const {
    const double t = fraction[i], a = t + 1, b = t - 1, c = t - 2;
    return {-t * b * c / 6, a * b * c / 2, -a * t * c / 2, a * t * b / 6};
  }
};

// A quantity and the same quantity weighted, at each node of a block.
struct Channels {
  std::vector<double> plain, weighted;
  void reset(Index n, bool both) {
    plain.assign(static_cast<std::size_t>(n), 0.0);
    weighted.assign(static_cast<std::size_t>(both ? n : 0), 0.0);
  }
};

// out[p] += mass * kernel[p], kernel being contiguous where the nodes are.
METARANK_KERNEL void add_scaled(double* out, const double* kernel, double mass, Index n) {
  for (Index p = 0; p < n; ++p) out[p] += mass * kernel[p];
}

// Sums of the mass at all nodes, seen from every node through a kernel.
//   far < 0: nodes far above count with `far_kernel` 1; > 0: nodes far below; 0: none.
//   linear: nodes far above count with their distance instead.
void convolve(const Index* node, Index n, const std::vector<double>& mass, const std::vector<double>& kernel, int far,
              bool linear, std::vector<double>& out, int n_threads) {
  out.assign(static_cast<std::size_t>(n), 0.0);
  if (mass.empty()) return;
  std::vector<double> sum(static_cast<std::size_t>(n) + 1, 0.0), moment;
  if (far > 0)
    for (Index q = 0; q < n; ++q) sum[q + 1] = sum[q] + mass[q];
  if (far < 0)
    for (Index q = n; q-- > 0;) sum[q] = sum[q + 1] + mass[q];
  const auto x = [&](Index q) { return static_cast<double>(node[q] - node[0]) * kSpacing; };
  if (linear) {
    moment.assign(static_cast<std::size_t>(n) + 1, 0.0);
    for (Index q = n; q-- > 0;) moment[q] = moment[q + 1] + mass[q] * x(q);
  }
  std::vector<Index> tile;  // beginnings
  for (Index p = 0; p < n;) {
    tile.push_back(p);
    p = std::lower_bound(node + p, node + std::min(n, p + kTile), node[p] + kTile) - node;
  }
  tile.push_back(n);
  const double* centre = kernel.data() + Kernels::kHalf;
  parallel_for(static_cast<Index>(tile.size()) - 1, n_threads, 1, [&](Index begin, Index end, int) {
    for (Index t = begin; t < end; ++t) {
      const Index a = tile[t], b = tile[t + 1];
      const bool dense = node[b - 1] - node[a] == b - 1 - a;
      const Index from = std::lower_bound(node, node + n, node[a] - kReach) - node;
      const Index to = std::upper_bound(node, node + n, node[b - 1] + kReach) - node;
      for (Index q = from; q < to; ++q) {
        if (mass[q] == 0) continue;
        if (dense)
          by_level<add_scaled>(out.data() + a, centre + (node[a] - node[q]), mass[q], b - a);
        else
          for (Index p = a; p < b; ++p) out[p] += mass[q] * centre[node[p] - node[q]];
      }
      for (Index p = a; p < b; ++p) {
        if (linear)
          out[p] += moment[to] - x(p) * sum[to];
        else if (far < 0)
          out[p] += sum[to];
        else if (far > 0)
          out[p] += sum[from];
      }
    }
  });
}

class Logistic {
 public:
  double solve(Sample& d, int n_threads) {
    prepare(d);
    struct Block {
      Index a, b, c;  // grades [a, c) below and [c, b) above; c = a where all pairs of [a, b) are meant
    };
    double loss = 0;
    std::vector<Block> level;
    const auto add = [&](std::vector<Block>& blocks, Index a, Index b) {
      if (b - a < 2) return;
      blocks.push_back({a, b, d.first[b] - d.first[a] <= kLeaf ? a : d.middle_grade(a, b)});
    };
    for (add(level, 0, static_cast<Index>(d.first.size()) - 1); !level.empty();) {
      std::vector<double> losses(level.size(), 0.0);
      const auto run = [&](Index k, int threads) {
        const Block& block = level[k];
        losses[k] = block.c == block.a ? leaf(d, block.a, block.b)
                                       : across(d, d.first[block.a], d.first[block.c], d.first[block.b], threads);
      };
      if (level.size() < 8) {
        for (std::size_t k = 0; k < level.size(); ++k) run(static_cast<Index>(k), n_threads);
      } else {
        const auto n = static_cast<Index>(level.size());
        parallel_for(n, n_threads, std::max<Index>(1, n / 256), [&](Index begin, Index end, int) {
          for (Index k = begin; k < end; ++k) run(k, 1);
        });
      }
      for (const double value : losses) loss += value;
      std::vector<Block> next;
      for (const Block& block : level)
        if (block.c != block.a) {
          add(next, block.a, block.c);
          add(next, block.c, block.b);
        }
      level = std::move(next);
    }
    return loss;
  }

 private:
  std::vector<double> e_;  // exp(score), empty where it would overflow
  Grid grid_;

  void prepare(const Sample& d) {
    const auto [least, greatest] = std::minmax_element(d.s, d.s + d.n);
    e_.clear();
    if (*greatest - *least <= 600) {
      const double centre = 0.5 * (*least + *greatest);
      e_.resize(static_cast<std::size_t>(d.n));
      for (Index i = 0; i < d.n; ++i) e_[i] = std::exp(d.s[i] - centre);
    }
    grid_.node.clear();
    if (d.n > 4 * kLeaf) grid_.build(d.s, d.n);
  }

  // Row i with all rows [lo, hi), which have lower grades.
  double row(const Sample& d, Index i, Index lo, Index hi) const {
    if (e_.empty())
      logistic_row_far(d, i, lo, hi);
    else
      by_level<logistic_row>(e_[i], d.y[i], d.difference, e_.data() + lo, d.y + lo, d.grad + lo, d.hess + lo, hi - lo,
                             d.grad + i, d.hess + i);
    return d.with_loss ? logistic_row_loss(d, i, lo, hi) : 0.0;
  }

  double leaf(const Sample& d, Index a, Index b) const {
    double loss = 0;
    for (Index g = a + 1; g < b; ++g)
      for (Index i = d.first[g]; i < d.first[g + 1]; ++i) loss += row(d, i, d.first[a], d.first[g]);
    return loss;
  }

  double across(const Sample& d, Index lo, Index mid, Index hi, int n_threads) const {
    if (!grid_.node.empty()) {
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

  // Rows to nodes. Chunks of rows have grids of their own, summed in order: threads do not show.
  template <typename Weight>
  Channels deposit(Index lo, Index hi, Index first, Index n_nodes, bool both, bool plain, Weight weight,
                   int n_threads) const {
    const Index size = std::max(kChunk, 4 * n_nodes), n_chunks = (hi - lo + size - 1) / size;
    std::vector<Channels> chunks(static_cast<std::size_t>(n_chunks));
    parallel_for(n_chunks, n_threads, 1, [&](Index begin, Index end, int) {
      for (Index k = begin; k < end; ++k) {
        Channels& c = chunks[k];
        c.reset(n_nodes, both);
        for (Index i = lo + k * size; i < std::min(hi, lo + (k + 1) * size); ++i) {
          const auto w = grid_.weights(i);
          const Index p = grid_.at[i] - first;
          const double value = weight(i), one = plain ? 1.0 : value;
          for (int a = 0; a < 4; ++a) c.plain[p + a] += one * w[a];
          if (both)
            for (int a = 0; a < 4; ++a) c.weighted[p + a] += value * w[a];
        }
      }
    });
    for (std::size_t k = 1; k < chunks.size(); ++k) {
      for (Index p = 0; p < n_nodes; ++p) chunks[0].plain[p] += chunks[k].plain[p];
      if (both)
        for (Index p = 0; p < n_nodes; ++p) chunks[0].weighted[p] += chunks[k].weighted[p];
    }
    return std::move(chunks[0]);
  }

  double over_grid(const Sample& d, Index lo, Index mid, Index hi, Index first, Index n_nodes, int n_threads) const {
    const Kernels& table = kernels();
    const Cut cut(d, mid);
    const Index* node = grid_.node.data() + first;
    const bool both = cut.l(lo) != 0;  // does any row below the cut carry a weight?
    // Below: ones, and l(j). Above: u(i) where l is zero, otherwise ones and u(i).
    const Channels below =
        deposit(lo, mid, first, n_nodes, both, true, [&](Index j) { return cut.l(j); }, n_threads);
    const Channels above =
        deposit(mid, hi, first, n_nodes, both, both, [&](Index i) { return cut.u(i); }, n_threads);
    const std::vector<double>& above_weighted = both ? above.weighted : above.plain;

    std::vector<double> out[2][2];
    const auto read = [&](Index begin, Index end, bool is_above) {
      parallel_for(end - begin, n_threads, kChunk, [&](Index from, Index to, int) {
        for (Index i = begin + from; i < begin + to; ++i) {
          const auto w = grid_.weights(i);
          const Index p = grid_.at[i] - first;
          double value[2];
          for (int k = 0; k < 2; ++k) {
            double plain = 0, weighted = 0;
            for (int a = 0; a < 4; ++a) plain += w[a] * out[k][0][p + a];
            if (both || !is_above)
              for (int a = 0; a < 4; ++a) weighted += w[a] * out[k][1][p + a];
            value[k] = is_above ? cut.u(i) * plain + weighted : cut.l(i) * plain + weighted;
          }
          d.grad[i] += is_above ? -value[0] : value[0];
          d.hess[i] += std::max(value[1], 0.0);
        }
      });
    };

    convolve(node, n_nodes, below.plain, table.won, -1, false, out[0][0], n_threads);
    convolve(node, n_nodes, below.weighted, table.won, -1, false, out[0][1], n_threads);
    convolve(node, n_nodes, below.plain, table.bend, 0, false, out[1][0], n_threads);
    convolve(node, n_nodes, below.weighted, table.bend, 0, false, out[1][1], n_threads);
    read(mid, hi, true);

    const std::vector<double> none;
    const std::vector<double>& above_plain = both ? above.plain : none;
    convolve(node, n_nodes, above_plain, table.lost, 1, false, out[0][0], n_threads);
    convolve(node, n_nodes, above_weighted, table.lost, 1, false, out[0][1], n_threads);
    convolve(node, n_nodes, above_plain, table.bend, 0, false, out[1][0], n_threads);
    convolve(node, n_nodes, above_weighted, table.bend, 0, false, out[1][1], n_threads);
    read(lo, mid, false);

    if (!d.with_loss) return 0;
    double loss = 0;
    convolve(node, n_nodes, below.plain, table.loss, -1, true, out[0][0], n_threads);
    for (Index p = 0; p < n_nodes; ++p) loss += above_weighted[p] * out[0][0][p];
    if (both) {
      convolve(node, n_nodes, below.weighted, table.loss, -1, true, out[0][0], n_threads);
      for (Index p = 0; p < n_nodes; ++p) loss += above.plain[p] * out[0][0][p];
    }
    return loss;
  }
};

// --- hinge and the area itself, in the order of scores ----------------------

class Sweep {
 public:
  // step: the loss is the share of pairs in the wrong order, a tie one half, and has no derivatives.
  explicit Sweep(bool step) : step_(step) {}

  double solve(const Sample& d) {
    keyed_.resize(static_cast<std::size_t>(d.n));
    for (Index i = 0; i < d.n; ++i) keyed_[i] = {d.s[i], i};
    std::sort(keyed_.begin(), keyed_.end());
    centre_ = keyed_[d.n / 2].first;
    id_.resize(keyed_.size());
    above_.resize(keyed_.size());
    for (Index i = 0; i < d.n; ++i) id_[i] = keyed_[i].second;
    return pairs_of(d, 0, static_cast<Index>(d.first.size()) - 1);
  }

 private:
  bool step_;
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

enum class Surrogate { kLogistic, kHinge, kStep };

Surrogate surrogate_of(const std::string& name) {
  if (name == "logistic") return Surrogate::kLogistic;
  if (name == "hinge") return Surrogate::kHinge;
  require(name == "step", "surrogate must be 'logistic', 'hinge' or 'step'");
  return Surrogate::kStep;
}

}  // namespace

std::tuple<double, Array1<double>, Array1<double>> auc_gradients(In1<double> scores, In1<double> target,
                                                                 In1<Index> order, In1<Index> indptr,
                                                                 In1<double> costs, const std::string& name,
                                                                 bool difference, bool with_loss, int n_threads) {
  const Surrogate surrogate = surrogate_of(name);
  const auto n = static_cast<Index>(scores.shape(0));
  const Index n_groups = require_lists(indptr, scores.shape(0));
  require(target.shape(0) == scores.shape(0), "target must have one entry a score");
  require(order.shape(0) == scores.shape(0), "order must have one entry a score");
  require_finite(target, "target");
  const bool own_cost = costs.shape(0) == 0;
  require(own_cost || static_cast<Index>(costs.shape(0)) == n_groups, "costs must have one entry a group, or none");
  for (Index g = 0; g < n_groups && !own_cost; ++g)
    require(costs(g) > 0 && std::isfinite(costs(g)), "costs must be positive and finite");
  for (Index i = 0; i < n; ++i) require(std::fabs(scores(i)) <= kMaxScore, "scores must be finite and within 1e15");
  std::vector<double> s(static_cast<std::size_t>(n)), y(s.size());
  std::vector<char> seen(s.size(), 0);
  for (Index i = 0; i < n; ++i) {
    require(order(i) >= 0 && order(i) < n && !seen[order(i)], "order must be a permutation");
    seen[order(i)] = 1;
    s[i] = scores(order(i));
    y[i] = target(order(i));
  }
  for (Index g = 0; g < n_groups; ++g)
    for (Index i = indptr(g) + 1; i < indptr(g + 1); ++i)
      require(y[i - 1] <= y[i], "order must sort each group by its target");

  std::vector<double> grad(surrogate == Surrogate::kStep ? 0 : s.size(), 0.0), hess(grad.size(), 0.0);
  double loss = 0;
  std::vector<double> losses(static_cast<std::size_t>(n_groups), 0.0);
  std::vector<char> counts(losses.size(), 0);
  const int inner = n_groups == 1 ? n_threads : 1;
  parallel_for(n_groups, n_groups == 1 ? 1 : n_threads, 64, [&](Index begin, Index end, int) {
    Logistic logistic;
    Sweep sweep(surrogate == Surrogate::kStep);
    Sample d{};
    for (Index g = begin; g < end; ++g) {
      const Index lo = indptr(g), size = indptr(g + 1) - lo;
      if (size < 2 || y[lo] == y[lo + size - 1]) continue;
      d.s = s.data() + lo;
      d.y = y.data() + lo;
      d.n = size;
      d.difference = difference;
      d.with_loss = with_loss;
      d.grad = grad.empty() ? nullptr : grad.data() + lo;
      d.hess = hess.empty() ? nullptr : hess.data() + lo;
      d.find_grades();
      const double total = surrogate == Surrogate::kLogistic ? logistic.solve(d, inner) : sweep.solve(d);
      const double cost = own_cost ? d.total_cost() : costs(g);
      counts[g] = 1;
      losses[g] = total / cost;
      if (d.grad != nullptr)
        for (Index i = 0; i < size; ++i) {
          d.grad[i] /= cost;
          d.hess[i] /= cost;
        }
    }
  });
  double n_counted = 0;
  for (Index g = 0; g < n_groups; ++g) {
    n_counted += counts[g];
    loss += losses[g];
  }
  require(n_counted > 0, "target must differ between two rows of a group");
  if (!own_cost) n_counted = 1;
  loss /= n_counted;
  for (Index i = 0; i < static_cast<Index>(grad.size()); ++i) {  // back to the caller's order
    s[order(i)] = grad[i] / n_counted;
    y[order(i)] = hess[i] / n_counted;
  }
  if (surrogate == Surrogate::kStep) {
    s.clear();
    y.clear();
  }
  return {loss, to_array(std::move(s)), to_array(std::move(y))};
}

}  // namespace metarank
