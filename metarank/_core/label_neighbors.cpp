#include "label_neighbors.h"

#include <array>
#include <numeric>

#include "arrays.h"
#include "parallel.h"
#include "distances.h"
#include "inverted_index.h"

namespace metarank {

namespace {

// The pairs to describe, and the training rows of each label. Ids are checked
// where they are read, so that a call costs what it touches, not the size of the training set.
struct Pairs : LabelPairs {
  std::int64_t n_pairs() const { return static_cast<std::int64_t>(pair_labels.shape(0)); }
  std::int64_t n_labels() const { return static_cast<std::int64_t>(label_indptr.shape(0)) - 1; }

  void check(std::int64_t n_queries) const {
    require(static_cast<std::int64_t>(pair_indptr.shape(0)) == n_queries + 1, "candidates must have one list a row of X");
    require(label_indptr.shape(0) >= 1, "label_indptr must not be empty");
    require(pair_indptr(0) == 0 && pair_indptr(static_cast<std::size_t>(n_queries)) == n_pairs(),
            "candidates.indptr must start at 0 and end at the number of pairs");
    for (std::int64_t i = 0; i < n_queries; ++i)
      require(pair_indptr.data()[i] <= pair_indptr.data()[i + 1] && pair_indptr.data()[i + 1] <= n_pairs(),
              "candidates.indptr must not decrease");
    for (std::int64_t p = 0; p < n_pairs(); ++p)
      require(pair_labels.data()[p] >= 0 && pair_labels.data()[p] < n_labels(), "candidates.labels must lie in [0, n_labels)");
  }

  std::pair<const std::int32_t*, std::int64_t> rows_of(std::int32_t label) const {
    const std::int64_t begin = label_indptr.data()[label], end = label_indptr.data()[label + 1];
    require(0 <= begin && begin <= end && end <= static_cast<std::int64_t>(label_rows.shape(0)),
            "label_indptr must not decrease nor exceed label_rows");
    return {label_rows.data() + begin, end - begin};
  }
};

// Which numbers of a sorted list are written out: its orders[j]-th smallest, and
// the means of its first means[j]. Column-major: one contiguous array a column.
struct Columns {
  std::vector<Metric> metrics;
  std::vector<int> orders;
  std::vector<int> means;
  int k;

  std::array<bool, kMetrics> wanted{};

  explicit Columns(const NeighborColumns& asked) : orders(asked.orders), means(asked.means), k(0) {
    for (const int metric : asked.metrics) {
      require(metric >= 0 && metric < kMetrics, "metrics must be among l2, l1 and cosine");
      metrics.push_back(static_cast<Metric>(metric));
      wanted[static_cast<std::size_t>(metric)] = true;
    }
    for (const auto& list : {orders, means})
      for (const int j : list) {
        require(j >= 1, "orders and means must be positive");
        k = std::max(k, j);
      }
    require(k >= 1, "orders and means must not both be empty");
  }

  std::size_t per_metric() const { return orders.size() + means.size(); }
  std::size_t count() const { return metrics.size() * per_metric(); }

  // `far` stands for every distance of a label without a point; short lists are padded with their last value.
  void write(std::size_t slot, const Smallest& nearest, double far, std::int64_t pair, std::int64_t n_pairs,
             float* out) const {
    const Metric metric = metrics[slot];
    float* column = out + static_cast<std::int64_t>(slot * per_metric()) * n_pairs + pair;
    const int last = nearest.size() - 1;
    auto distance = [&](int j) { return distance_of(metric, last < 0 ? far : nearest[std::min(j, last)]); };
    for (const int j : orders) {
      *column = distance(j - 1);
      column += n_pairs;
    }
    for (const int j : means) {
      double sum = 0.0;
      for (int i = 0; i < j; ++i) sum += distance(i);
      *column = static_cast<float>(std::min<double>(sum / j, std::numeric_limits<float>::max()));
      column += n_pairs;
    }
  }
};

}  // namespace

Array2<float> label_neighbors_sparse(const InvertedIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                                     In1<float> data, const LabelPairs& asked, const NeighborColumns& wanted,
                                     int n_threads) {
  require(indptr.shape(0) >= 1, "X.indptr must not be empty");
  require(indices.shape(0) == data.shape(0), "X.indices and X.data must have the same length");
  const auto n_queries = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  check_csr(n_queries, index.n_features(), indptr.data(), static_cast<std::int64_t>(data.shape(0)), indices.data());
  const Pairs pairs{asked};
  pairs.check(n_queries);
  const Columns columns(wanted);
  const std::int64_t m = pairs.n_pairs(), n = index.n_rows();
  std::vector<float> out(columns.count() * static_cast<std::size_t>(m));
  const bool with_l1 = columns.wanted[kL1];
  parallel_for(n_queries, n_threads, 4, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<Smallest> nearest(columns.metrics.size(), Smallest(columns.k));
    for (std::int64_t q = begin; q < end; ++q) {
      const SparseRow x{indices.data() + indptr.data()[q], data.data() + indptr.data()[q],
                        indptr.data()[q + 1] - indptr.data()[q]};
      const double sq_x = x.sq_norm(), l1_x = x.l1_norm();
      auto sums = index.overlaps(x, with_l1);
      const double inverse_x = sq_x > 0.0 ? 1.0 / std::sqrt(sq_x) : 0.0;
      for (std::int64_t p = pairs.pair_indptr.data()[q]; p < pairs.pair_indptr.data()[q + 1]; ++p) {
        for (auto& list : nearest) list.reset();
        const auto [rows, count] = pairs.rows_of(pairs.pair_labels.data()[p]);
        for (std::int64_t i = 0; i < count; ++i) {
          const std::int32_t y = rows[i];
          require(y >= 0 && y < n, "label_rows must lie in [0, n)");
          const double product = sums->dot[static_cast<std::size_t>(y)];
          for (std::size_t a = 0; a < nearest.size(); ++a) {
            switch (columns.metrics[a]) {
              case kL2: nearest[a].push(std::max(0.0, sq_x + index.sq_norm()[y] - 2.0 * product)); break;
              case kL1: nearest[a].push(std::max(0.0, l1_x + index.l1_norm()[y] + sums->l1[static_cast<std::size_t>(y)])); break;
              case kCosine:
                if (nearest[a].full() &&
                    (product == 0.0 ? nearest[a].worst() <= 1.0
                                    : surely_beyond(nearest[a].worst(), product * inverse_x * index.inverse_norms()[y])))
                  continue;
                nearest[a].push(cosine_distance(product, sq_x, index.sq_norm()[y]));
                break;
            }
          }
        }
        for (std::size_t a = 0; a < nearest.size(); ++a)
          columns.write(a, nearest[a],
                        far_key(columns.metrics[a], sq_x, l1_x, index.max_sq_norm(), index.max_l1_norm()), p, m,
                        out.data());
      }
      index.give_back(std::move(sums));
    }
  });
  return to_array(std::move(out), columns.count(), static_cast<std::size_t>(m));
}

namespace {


struct DenseScratch {
  std::vector<std::uint32_t> stamp;    // by row: the query whose keys are known
  std::vector<float> keys;             // by row and metric
  std::vector<std::int32_t> position;  // by label: its place in the query's list, or -1
  std::uint32_t now = 0;
};

}  // namespace

Array2<float> label_neighbors_dense(const DensePoints& points, In2<float> Q, const LabelPairs& asked,
                                    const NeighborColumns& wanted, const Proposals& proposals, int n_threads) {
  // By name: lambdas cannot capture a structured binding before Clang 16.
  const In2<float>& X = points.X;
  const In1<float>& sq_norm = points.sq_norm;
  const double max_sq_norm = points.max_sq_norm, max_l1_norm = points.max_l1_norm;
  const In1<std::int64_t>& row_indptr = points.row_indptr;
  const In1<std::int32_t>& row_labels = points.row_labels;
  const auto n = static_cast<std::int64_t>(X.shape(0)), d = static_cast<std::int64_t>(X.shape(1));
  const auto n_queries = static_cast<std::int64_t>(Q.shape(0));
  require(Q.shape(1) == X.shape(1), "X must have as many features as the training rows");
  require(sq_norm.shape(0) == X.shape(0), "sq_norm must have one entry a row");
  require(row_indptr.shape(0) == X.shape(0) + 1, "row_indptr must have one entry a row and one more");
  const Pairs pairs{asked};
  pairs.check(n_queries);
  const Columns columns(wanted);
  const std::size_t n_metrics = columns.metrics.size();
  const std::int64_t n_proposed = proposals.per_query();
  require(proposals.rows.shape(0) == n_metrics && proposals.rows.shape(1) == Q.shape(0) &&
              proposals.bounds.shape(0) == n_metrics && proposals.bounds.shape(1) == Q.shape(0),
          "proposals must have shape (metrics, queries, M), bounds (metrics, queries)");
  const std::int64_t m = pairs.n_pairs();
  std::vector<float> out(columns.count() * static_cast<std::size_t>(m));
  std::vector<std::int32_t> every(static_cast<std::size_t>(n));
  std::iota(every.begin(), every.end(), 0);
  std::vector<DenseScratch> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
  parallel_for(n_queries, n_threads, 4, [&](std::int64_t begin, std::int64_t end, int worker) {
    DenseScratch& s = scratch[static_cast<std::size_t>(worker)];
    if (s.stamp.empty()) {
      s.stamp.assign(static_cast<std::size_t>(n), 0);
      s.keys.resize(static_cast<std::size_t>(n) * kMetrics);
      if (n_proposed > 0) s.position.assign(static_cast<std::size_t>(pairs.n_labels()), -1);
    }
    std::vector<Smallest> lists;                 // by place in the query's list and metric
    std::vector<std::int64_t> found;             // how many points of the label were proposed
    std::vector<Smallest> scanned(n_metrics, Smallest(columns.k));
    for (std::int64_t q = begin; q < end; ++q) {
      ++s.now;
      const float* x = Q.data() + q * d;
      const float sq_x = dot(x, x, d);
      const double l1_x = sum_of_magnitudes(x, d);
      const std::int64_t first = pairs.pair_indptr.data()[q], last = pairs.pair_indptr.data()[q + 1];
      auto compute = [&](const std::int32_t* wanted_rows, std::int64_t count) {
        require(dense_keys(x, X.data(), sq_norm.data(), n, d, sq_x, columns.wanted.data(), wanted_rows, count,
                           s.now, s.stamp.data(), s.keys.data()),
                "row numbers must lie in [0, n)");
      };
      if (n_proposed > 0) {
        lists.assign(static_cast<std::size_t>(last - first) * n_metrics, Smallest(columns.k));
        found.assign(lists.size(), 0);
        for (std::int64_t p = first; p < last; ++p)
          s.position[static_cast<std::size_t>(pairs.pair_labels.data()[p])] = static_cast<std::int32_t>(p - first);
        for (std::size_t a = 0; a < n_metrics; ++a) {
          const std::int32_t* proposed = proposals.of(a, q);
          compute(proposed, n_proposed);
          for (std::int64_t i = 0; i < n_proposed; ++i) {
            const std::int64_t b = row_indptr.data()[proposed[i]], e = row_indptr.data()[proposed[i] + 1];
            require(0 <= b && b <= e && e <= static_cast<std::int64_t>(row_labels.shape(0)),
                    "row_indptr must not decrease nor exceed row_labels");
            for (std::int64_t t = b; t < e; ++t) {
              const std::int32_t label = row_labels.data()[t];
              require(label >= 0 && label < pairs.n_labels(), "row_labels must lie in [0, n_labels)");
              const std::int32_t place = s.position[static_cast<std::size_t>(label)];
              if (place < 0) continue;
              const std::size_t at = static_cast<std::size_t>(place) * n_metrics + a;
              lists[at].push(s.keys[static_cast<std::size_t>(proposed[i]) * kMetrics + columns.metrics[a]]);
              ++found[at];
            }
          }
        }
        for (std::int64_t p = first; p < last; ++p) s.position[static_cast<std::size_t>(pairs.pair_labels.data()[p])] = -1;
      }
      // Complete if no point of the label was left out, or none of those can come before the k-th.
      auto certified = [&](std::size_t at, std::size_t a, std::int64_t count) {
        return found[at] == count || (lists[at].full() && lists[at].worst() <= proposals.bound(a, q));
      };
      if (n_proposed == 0) {
        std::int64_t points = 0;
        for (std::int64_t p = first; p < last; ++p) points += pairs.rows_of(pairs.pair_labels.data()[p]).second;
        if (points >= n) compute(every.data(), n);  // in memory's order, not label by label
      }
      for (std::int64_t p = first; p < last; ++p) {
        const auto [points, count] = pairs.rows_of(pairs.pair_labels.data()[p]);
        const std::size_t at = static_cast<std::size_t>(p - first) * n_metrics;
        bool complete = n_proposed > 0;
        for (std::size_t a = 0; a < n_metrics && complete; ++a) complete = certified(at + a, a, count);
        if (!complete) {
          compute(points, count);
          for (auto& list : scanned) list.reset();
          for (std::int64_t i = 0; i < count; ++i) {
            const float* keys = s.keys.data() + static_cast<std::size_t>(points[i]) * kMetrics;
            for (std::size_t a = 0; a < n_metrics; ++a) scanned[a].push(keys[columns.metrics[a]]);
          }
        }
        for (std::size_t a = 0; a < n_metrics; ++a)
          columns.write(a, complete ? lists[at + a] : scanned[a],
                        far_key(columns.metrics[a], sq_x, l1_x, max_sq_norm, max_l1_norm), p, m, out.data());
      }
    }
  });
  return to_array(std::move(out), columns.count(), static_cast<std::size_t>(m));
}

std::tuple<Array1<float>, Array1<float>> row_norms(In2<float> X) {
  const auto n = static_cast<std::int64_t>(X.shape(0)), d = static_cast<std::int64_t>(X.shape(1));
  std::vector<float> sq(static_cast<std::size_t>(n)), magnitude(static_cast<std::size_t>(n));
  for (std::int64_t i = 0; i < n; ++i) {
    const float* x = X.data() + i * d;
    sq[static_cast<std::size_t>(i)] = dot(x, x, d);
    magnitude[static_cast<std::size_t>(i)] = sum_of_magnitudes(x, d);
  }
  return std::make_tuple(to_array(std::move(sq)), to_array(std::move(magnitude)));
}

namespace {

METARANK_KERNEL bool keys_of_rows(const float* x, const float* X, const float* sq_norm, std::int64_t n,
                                  std::int64_t d, float sq_x, const bool* wanted, const std::int32_t* rows,
                                  std::int64_t n_rows, std::uint32_t now, std::uint32_t* stamp, float* keys) {
  const bool all = wanted[kL2] && wanted[kL1] && wanted[kCosine];
  for (std::int64_t i = 0; i < n_rows; ++i) {
    const std::int64_t r = rows[i];
    if (r < 0 || r >= n) return false;
    if (stamp[r] == now) continue;
    stamp[r] = now;
    const float* y = X + r * d;
    float* key = keys + r * kMetrics;
    if (all) {
      const Sums sums = all_sums(x, y, d);
      key[kL2] = sums.squared_l2;
      key[kL1] = sums.l1;
      key[kCosine] = static_cast<float>(cosine_distance(sums.dot, sq_x, sq_norm[r]));
      continue;
    }
    if (wanted[kL2]) key[kL2] = squared_l2(x, y, d);
    if (wanted[kL1]) key[kL1] = l1(x, y, d);
    if (wanted[kCosine]) key[kCosine] = static_cast<float>(cosine_distance(dot(x, y, d), sq_x, sq_norm[r]));
  }
  return true;
}

}  // namespace

bool dense_keys(const float* x, const float* X, const float* sq_norm, std::int64_t n, std::int64_t d, float sq_x,
                const bool* wanted, const std::int32_t* rows, std::int64_t n_rows, std::uint32_t now,
                std::uint32_t* stamp, float* keys) {
  return by_level<keys_of_rows>(x, X, sq_norm, n, d, sq_x, wanted, rows, n_rows, now, stamp, keys);
}

}  // namespace metarank
