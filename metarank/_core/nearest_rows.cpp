#include "nearest_rows.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>

#include "arrays.h"
#include "parallel.h"
#include "distances.h"
#include "inverted_index.h"
#include "lists.h"
#include "pairs.h"
#include "simd.h"

namespace metarank {

namespace {

struct Neighbor {
  double key;
  std::int32_t row;
  bool operator<(const Neighbor& other) const { return key < other.key || (key == other.key && row < other.row); }
};

// The k first of the neighbours pushed, by (key, row). Holds up to 2k and is cut back to k when full.
class Nearest {
 public:
  explicit Nearest(int k) : k_(static_cast<std::size_t>(k)) {
    list_.reserve(2 * k_);
    reset();
  }
  void reset() {
    list_.clear();
    last_ = {std::numeric_limits<double>::infinity(), std::numeric_limits<std::int32_t>::max()};
  }

  // No neighbour beyond this key can enter any more.
  double limit() const { return last_.key; }

  void push(const Neighbor& candidate) {
    if (!(candidate < last_)) return;
    list_.push_back(candidate);
    if (list_.size() == 2 * k_) cut();
  }

  // Puts the k first in order; `full`, `worst` and `write` speak of them.
  void finish() {
    if (list_.size() > k_) cut();
    std::sort(list_.begin(), list_.end());
  }
  bool full() const { return list_.size() == k_; }
  double worst() const { return list_.back().key; }

  // Rows padded with -1, distances with 0.
  void write(Metric metric, std::int32_t* rows, float* distances) const {
    for (std::size_t j = 0; j < k_; ++j) {
      rows[j] = j < list_.size() ? list_[j].row : -1;
      distances[j] = j < list_.size() ? distance_of(metric, list_[j].key) : 0.0f;
    }
  }

 private:
  void cut() {
    const auto last = list_.begin() + static_cast<std::ptrdiff_t>(k_) - 1;
    std::nth_element(list_.begin(), last, list_.end());
    last_ = *last;
    list_.resize(k_);
  }

  std::size_t k_;
  Neighbor last_{};
  std::vector<Neighbor> list_;
};

constexpr std::int64_t kBlock = 32;

bool ascend_by_one(const std::int32_t* rows, std::size_t n) {
  bool all = true;
  for (std::size_t i = 1; i < n; ++i) all &= rows[i] == rows[i - 1] + 1;
  return all;
}

METARANK_KERNEL double greatest_product(const double* a, const double* b, std::int64_t begin, std::int64_t end) {
  constexpr int kWide = 8;
  double greatest[kWide];
  for (double& g : greatest) g = -std::numeric_limits<double>::infinity();
  std::int64_t i = begin;
  for (; i + kWide <= end; i += kWide)
    for (int k = 0; k < kWide; ++k) {
      const double product = a[i + k] * b[i + k];
      greatest[k] = product > greatest[k] ? product : greatest[k];
    }
  for (; i < end; ++i) greatest[0] = std::max(greatest[0], a[i] * b[i]);
  return *std::max_element(greatest, greatest + kWide);
}

Metric checked_metric(int metric) {
  require(metric >= 0 && metric < kMetrics, "metric must be l2, l1 or cosine");
  return static_cast<Metric>(metric);
}

void check_rows(const In1<std::int32_t>& rows, std::int64_t n) { require_in_range(rows, n, "rows"); }

}  // namespace

NearestRows nearest_rows_sparse(const InvertedIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                                In1<float> data, In1<std::int32_t> rows, int k, int metric_id, int n_threads) {
  require(indptr.shape(0) >= 1, "X.indptr must not be empty");
  require(indices.shape(0) == data.shape(0), "X.indices and X.data must have the same length");
  require(k >= 1, "k must be positive");
  const Metric metric = checked_metric(metric_id);
  const auto n_queries = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  check_csr(n_queries, index.n_features(), indptr.data(), static_cast<std::int64_t>(data.shape(0)), indices.data());
  check_rows(rows, index.n_rows());
  const auto width = static_cast<std::size_t>(k);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n_queries) * width);
  std::vector<float> distances(ids.size());
  const bool with_l1 = metric == kL1;
  const std::int64_t first_row = rows.shape(0) > 0 ? rows.data()[0] : 0;
  const bool in_a_row = ascend_by_one(rows.data(), rows.shape(0));
  parallel_for(n_queries, n_threads, 4, [&](std::int64_t begin, std::int64_t end, int) {
    Nearest nearest(k);
    for (std::int64_t q = begin; q < end; ++q) {
      const SparseRow x{indices.data() + indptr.data()[q], data.data() + indptr.data()[q],
                        indptr.data()[q + 1] - indptr.data()[q]};
      const double sq_x = x.sq_norm(), l1_x = x.l1_norm();
      auto sums = index.overlaps(x, with_l1);
      nearest.reset();
      const double *dot = sums->dot.data(), inverse_x = sq_x > 0.0 ? 1.0 / std::sqrt(sq_x) : 0.0;
      const auto consider = [&](std::int32_t y) {
        switch (metric) {
          case kL2: return nearest.push({std::max(0.0, sq_x + index.sq_norm()[y] - 2.0 * dot[y]), y});
          case kL1:
            return nearest.push(
                {std::max(0.0, l1_x + index.l1_norm()[y] + sums->l1[static_cast<std::size_t>(y)]), y});
          case kCosine:
            if (surely_beyond(nearest.limit(), dot[y] * inverse_x * index.inverse_norms()[y])) return;
            return nearest.push({cosine_distance(dot[y], sq_x, index.sq_norm()[y]), y});
        }
      };
      if (metric == kCosine && in_a_row) {
        // Most rows are too far, and blocks without a near one are passed over at a glance.
        const auto end = first_row + static_cast<std::int64_t>(rows.shape(0));
        for (std::int64_t y = first_row; y < end; y += kBlock) {
          const std::int64_t stop = std::min(end, y + kBlock);
          const double greatest = by_level<greatest_product>(dot, index.inverse_norms(), y, stop);
          if (surely_beyond(nearest.limit(), greatest * inverse_x)) continue;
          for (std::int64_t i = y; i < stop; ++i) consider(static_cast<std::int32_t>(i));
        }
      } else {
        for (std::size_t i = 0; i < rows.shape(0); ++i) consider(rows.data()[i]);
      }
      nearest.finish();
      nearest.write(metric, ids.data() + q * k, distances.data() + q * k);
      index.give_back(std::move(sums));
    }
  });
  return std::make_tuple(to_array(std::move(ids), static_cast<std::size_t>(n_queries), width),
                        to_array(std::move(distances), static_cast<std::size_t>(n_queries), width));
}

NearestRows nearest_rows_dense(In2<float> X, In1<float> sq_norm, In2<float> Q, In1<std::int32_t> rows, int k,
                               int metric_id, In2<std::int32_t> proposals, In1<double> bounds, int n_threads) {
  const auto n = static_cast<std::int64_t>(X.shape(0)), d = static_cast<std::int64_t>(X.shape(1));
  const auto n_queries = static_cast<std::int64_t>(Q.shape(0));
  const auto n_proposed = static_cast<std::int64_t>(proposals.shape(1));
  require(Q.shape(1) == X.shape(1), "X must have as many features as the training rows");
  require(sq_norm.shape(0) == X.shape(0), "sq_norm must have one entry a row");
  require(k >= 1, "k must be positive");
  require(proposals.shape(0) == Q.shape(0) && bounds.shape(0) == Q.shape(0), "proposals must have one list a query");
  const Metric metric = checked_metric(metric_id);
  check_rows(rows, n);
  const auto width = static_cast<std::size_t>(k);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n_queries) * width);
  std::vector<float> distances(ids.size());
  std::array<bool, kMetrics> wanted{};
  wanted[static_cast<std::size_t>(metric)] = true;
  std::vector<std::uint8_t> allowed(n_proposed > 0 ? static_cast<std::size_t>(n) : 0);
  if (n_proposed > 0)
    for (std::size_t i = 0; i < rows.shape(0); ++i) allowed[static_cast<std::size_t>(rows.data()[i])] = 1;
  struct Scratch {
    std::vector<std::uint32_t> stamp;
    std::vector<float> keys;
    std::uint32_t now = 0;
  };
  std::vector<Scratch> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
  parallel_for(n_queries, n_threads, 4, [&](std::int64_t begin, std::int64_t end, int worker) {
    Scratch& s = scratch[static_cast<std::size_t>(worker)];
    s.stamp.resize(static_cast<std::size_t>(n));
    s.keys.resize(static_cast<std::size_t>(n) * kMetrics);
    Nearest nearest(k);
    for (std::int64_t q = begin; q < end; ++q) {
      ++s.now;
      const float* x = Q.data() + q * d;
      const float sq_x = dot(x, x, d);
      auto consider = [&](const std::int32_t* list, std::int64_t count) {
        require(dense_keys(x, X.data(), sq_norm.data(), n, d, sq_x, wanted.data(), list, count, s.now,
                           s.stamp.data(), s.keys.data()),
                "row numbers must lie in [0, n)");
        nearest.reset();
        for (std::int64_t i = 0; i < count; ++i)
          if (n_proposed == 0 || allowed[static_cast<std::size_t>(list[i])])
            nearest.push({s.keys[static_cast<std::size_t>(list[i]) * kMetrics + metric], list[i]});
        nearest.finish();
      };
      consider(proposals.data() + q * n_proposed, n_proposed);
      // A row left out could still win a tie at the k-th place by its smaller number.
      if (!(nearest.full() && nearest.worst() < bounds.data()[q]))
        consider(rows.data(), static_cast<std::int64_t>(rows.shape(0)));
      nearest.write(metric, ids.data() + q * k, distances.data() + q * k);
    }
  });
  return std::make_tuple(to_array(std::move(ids), static_cast<std::size_t>(n_queries), width),
                        to_array(std::move(distances), static_cast<std::size_t>(n_queries), width));
}

namespace {

// The squared L2 distances from x to some rows of X, ids -1 left out: how many there were, at keys[0 ...] with their ids.
METARANK_KERNEL std::int64_t keys_of_proposals(const float* x, const float* X, std::int64_t d,
                                               const std::int32_t* ids, std::int64_t count, Neighbor* found) {
  std::int64_t n_found = 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (ids[i] >= 0) found[n_found++] = {squared_l2(x, X + ids[i] * d, d), ids[i]};
  return n_found;
}

}  // namespace

NearestRows nearest_proposed_dense(In2<float> X, In2<float> Q, In2<std::int32_t> proposals, int k, int n_threads) {
  const auto n = static_cast<std::int64_t>(X.shape(0)), d = static_cast<std::int64_t>(X.shape(1));
  const auto n_queries = static_cast<std::int64_t>(Q.shape(0));
  const auto n_proposed = static_cast<std::int64_t>(proposals.shape(1));
  require(Q.shape(1) == X.shape(1), "X must have as many features as the training rows");
  require(k >= 1, "k must be positive");
  require(proposals.shape(0) == Q.shape(0), "proposals must have one list a query");
  for (std::size_t i = 0; i < proposals.size(); ++i)
    require(proposals.data()[i] >= -1 && proposals.data()[i] < n, "proposals must be row numbers, or -1");
  const auto width = static_cast<std::size_t>(k);
  std::vector<std::int32_t> ids(static_cast<std::size_t>(n_queries) * width);
  std::vector<float> distances(ids.size());
  parallel_for(n_queries, n_threads, 4, [&](std::int64_t begin, std::int64_t end, int) {
    Nearest nearest(k);
    std::vector<Neighbor> found(static_cast<std::size_t>(n_proposed));
    for (std::int64_t q = begin; q < end; ++q) {
      const std::int64_t n_found = by_level<keys_of_proposals>(Q.data() + q * d, X.data(), d, proposals.data() + q *
                                                               n_proposed, n_proposed, found.data());
      nearest.reset();
      for (std::int64_t i = 0; i < n_found; ++i) nearest.push(found[static_cast<std::size_t>(i)]);
      nearest.finish();
      nearest.write(kL2, ids.data() + q * k, distances.data() + q * k);
    }
  });
  return std::make_tuple(to_array(std::move(ids), static_cast<std::size_t>(n_queries), width),
                        to_array(std::move(distances), static_cast<std::size_t>(n_queries), width));
}

}  // namespace metarank
