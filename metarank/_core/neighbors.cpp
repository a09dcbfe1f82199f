#include "neighbors.h"

#include <array>
#include <numeric>

#include "distances.h"
#include "sparse_rows.h"
#include "parallel.h"
#include "scored_lists.h"

namespace metarank {

namespace {

constexpr int64_t kBlock = InvertedIndex::kBlock;
constexpr double kRounding = 1e-6;
constexpr size_t kAhead = 4, kAtOnce = 32;  // rows that are fetched, and compared until the limit is told anew
constexpr int64_t kMostCompared = 16;  // one row in so many, before postings of all features cost less

// --- keys -------------------------------------------------------------------

struct Shared {
  double dot = 0.0, l1 = 0.0;
};

// A sparse query and the rows it is compared with: all at once by postings or, where that costs more than so many
// comparisons (`n_asked`), each read by itself. The bits are the same.
class SparseQuery {
 public:
  SparseQuery(const InvertedIndex& index, const SparseRow& x, bool with_l1, int64_t n_asked)
      : sq_x(x.sq_norm()), l1_x(x.l1_norm()), index_(index), x_(x), with_l1_(with_l1),
        inverse_x_(sq_x > 0.0 ? 1.0 / std::sqrt(sq_x) : 0.0), sums_(index.overlaps(x, with_l1, n_asked)),
        spread_(sums_ == nullptr ? index.spread(x) : nullptr) {}
  ~SparseQuery() {
    if (spread_ != nullptr) index_.clear(x_, *spread_);
    index_.give_back(std::move(sums_));
  }

  const double sq_x, l1_x;
  // Of all rows, where postings were added.
  const Overlaps* sums() const { return sums_.get(); }

  Shared shared(int32_t y) const {
    if (sums_ != nullptr) return {sums_->dot[y], with_l1_ ? sums_->l1[y] : 0.0};
    Shared sums;
    index_.add_row(*spread_, y, sums.dot, with_l1_ ? &sums.l1 : nullptr);
    return sums;
  }
  double key(Metric metric, int32_t y, const Shared& shared) const {
    if (metric == kL2) return std::max(0.0, sq_x + index_.sq_norm()[y] - 2.0 * shared.dot);
    if (metric == kL1) return std::max(0.0, l1_x + index_.l1_norm()[y] + shared.l1);
    return cosine_distance(shared.dot, sq_x, index_.sq_norm()[y]);
  }
  double quick_cosine(int32_t y, const Shared& shared) const {
    return shared.dot * inverse_x_ * index_.inverse_norms()[y];
  }
  // Of the greatest of some products of a dot and an inverse norm.
  double quick_cosine(double product) const { return product * inverse_x_; }

 private:
  const InvertedIndex& index_;
  SparseRow x_;
  bool with_l1_;
  double inverse_x_;
  std::unique_ptr<Overlaps> sums_;
  ScratchPool<SpreadRow>::Lease spread_;
};

using Wanted = std::array<bool, kMetrics>;

METARANK_KERNEL void keys_of_rows(const float* x, float sq_x, const float* X, const float* sq_norm, int64_t d,
                                  const Wanted& wanted, const int32_t* rows, int64_t n_rows,
                                  uint32_t now, uint32_t* stamp, float* keys) {
  const bool all = wanted[kL2] && wanted[kL1] && wanted[kCosine];
  for (int64_t i = 0; i < n_rows; ++i) {
    const int64_t r = rows[i];
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
}

// The keys of a dense query and the rows that were asked for, each computed once; of one worker.
class DenseQuery {
 public:
  void open(const In2<float>& X, const Values& sq_norm, const float* x, const Wanted& wanted) {
    X_ = X;
    sq_norm_ = sq_norm.data();
    x_ = x;
    wanted_ = wanted;
    stamp_.resize(X.shape(0));
    keys_.resize(X.shape(0) * kMetrics);
    ++now_;
    sq_x = dot(x, x, X.shape(1));
  }
  void compute(const int32_t* rows, int64_t count) {
    bool inside = true;
    for (int64_t i = 0; i < count; ++i) inside &= rows[i] >= 0 && rows[i] < static_cast<int64_t>(X_.shape(0));
    require(inside, "row numbers must lie in [0, n)");
    by_level<keys_of_rows>(x_, sq_x, X_.data(), sq_norm_, X_.shape(1), wanted_, rows, count, now_, stamp_.data(),
                           keys_.data());
  }
  float key(Metric metric, int64_t row) const { return keys_[row * kMetrics + metric]; }

  float sq_x = 0.0f;

 private:
  In2<float> X_;
  const float *sq_norm_ = nullptr, *x_ = nullptr;
  Wanted wanted_{};
  std::vector<uint32_t> stamp_;  // by row: the query whose keys are known
  std::vector<float> keys_;
  uint32_t now_ = 0;
};

float sum_of_magnitudes(const float* x, int64_t d) {
  return sum_in_lanes<float>(d, [=](int64_t j) METARANK_LAMBDA_INLINE { return std::fabs(x[j]); });
}

// --- the nearest of all rows --------------------------------------------------

struct Neighbor {
  double key;
  int32_t row;
  bool operator<(const Neighbor& other) const { return key < other.key || (key == other.key && row < other.row); }
};

// The k first of the neighbours pushed, by (key, row). Holds up to 2k and is cut back to k when full.
class Nearest {
 public:
  explicit Nearest(int k) : k_(k) {
    list_.reserve(2 * k_);
    reset();
  }
  void reset() {
    list_.clear();
    last_ = {std::numeric_limits<double>::infinity(), std::numeric_limits<int32_t>::max()};
  }

  // No neighbour beyond this key can enter any more.
  double limit() const { return last_.key; }

  void push(const Neighbor& candidate) {
    if (!(candidate < last_)) return;
    list_.push_back(candidate);
    if (list_.size() < 2 * k_) return;
    std::nth_element(list_.begin(), list_.begin() + (k_ - 1), list_.end());
    last_ = list_[k_ - 1];
    list_.resize(k_);
  }

  // Puts the k first in order; `full`, `worst`, `limit` and `list` speak of them.
  void finish() {
    keep_first(list_, k_);
    std::sort(list_.begin(), list_.end());
    if (full()) last_ = list_.back();
  }
  const std::vector<Neighbor>& list() const { return list_; }
  bool full() const { return list_.size() == k_; }
  double worst() const { return list_.back().key; }

  // As the q-th list; rows padded with -1, distances with 0.
  void write(Metric metric, int64_t q, NearestRows& out) const {
    int32_t* const rows = std::get<0>(out).values.data() + q * k_;
    float* const distances = std::get<1>(out).values.data() + q * k_;
    for (size_t j = 0; j < k_; ++j) {
      rows[j] = j < list_.size() ? list_[j].row : -1;
      distances[j] = j < list_.size() ? distance_of(metric, list_[j].key) : 0.0f;
    }
  }

 private:
  size_t k_;
  Neighbor last_{};
  std::vector<Neighbor> list_;
};

NearestRows room_for(size_t n, int k) {
  require(k >= 1, "k must be positive");
  const auto width = static_cast<size_t>(k);
  return {to_array(std::vector<int32_t>(n * width), n, width), to_array(std::vector<float>(n * width), n, width)};
}

METARANK_KERNEL double greatest_product(const double* a, const double* b, int64_t begin, int64_t end) {
  constexpr int kWide = 8;
  double greatest[kWide];
  for (double& g : greatest) g = -std::numeric_limits<double>::infinity();
  int64_t i = begin;
  for (; i + kWide <= end; i += kWide)
    for (int k = 0; k < kWide; ++k) {
      const double product = a[i + k] * b[i + k];
      greatest[k] = product > greatest[k] ? product : greatest[k];
    }
  for (; i < end; ++i) greatest[0] = std::max(greatest[0], a[i] * b[i]);
  return *std::max_element(greatest, greatest + kWide);
}

}  // namespace

SearchedRows::SearchedRows(Ids rows, int64_t n) : rows(rows) {
  require_in_range(rows, n, "rows");
  const auto n_rows = static_cast<int64_t>(rows.shape(0));
  for (int64_t i = 1; i < n_rows; ++i) {
    in_a_row &= rows(i) == rows(i - 1) + 1;
    ascend &= rows(i) > rows(i - 1);
  }
  if (n_rows == n && in_a_row) return;
  among.assign(static_cast<size_t>(n), 0);
  for (int64_t i = 0; i < n_rows; ++i) among[rows(i)] = 1;
}

namespace {

// The nearest by cosine. Bounds leave a few rows to be compared; false where they leave many.
bool nearest_by_bounds(const InvertedIndex& index, const SparseRow& row, const SearchedRows& rows, Nearest& likely,
                       Nearest& nearest) {
  const SparseQuery x(index, row, false, 0);
  if (x.sums() != nullptr || x.sq_x == 0.0) return false;
  const auto bounds = index.cosine_bounds(row);
  std::vector<float>& bound = bounds->of_row;
  const auto n_blocks = static_cast<int64_t>(bounds->of_block.size());
  const auto each_row = [&](int64_t block, float least, std::vector<Neighbor>& out) {
    const auto stop = static_cast<int32_t>(std::min(index.n_rows(), (block + 1) * kBlock));
    for (auto y = static_cast<int32_t>(block * kBlock); y < stop; ++y)
      if (bound[y] >= least && rows.has(y)) out.push_back({-bound[y], y});
  };
  const auto compare = [&](const std::vector<Neighbor>& list) {
    for (size_t i = 0; i < list.size(); ++i) {
      if (i + kAhead < list.size()) index.prefetch(list[i + kAhead].row);
      if (i % kAtOnce == 0) nearest.finish();
      if (surely_beyond(nearest.limit(), -list[i].key)) break;
      nearest.push({x.key(kCosine, list[i].row, x.shared(list[i].row)), list[i].row});
    }
    nearest.finish();
  };
  // Those of the greatest bounds first, which leave few others to come before the last of them.
  likely.reset();
  std::vector<Neighbor> others;
  for (int64_t block = 0; block < n_blocks; ++block)
    if (-bounds->of_block[block] <= likely.limit()) {
      others.clear();
      each_row(block, static_cast<float>(-likely.limit()), others);
      for (const Neighbor& other : others) likely.push(other);
    }
  likely.finish();
  compare(likely.list());
  if (!nearest.full()) return false;
  for (const Neighbor& known : likely.list()) bound[known.row] = -std::numeric_limits<float>::infinity();
  others.clear();
  const auto least = static_cast<float>(1.0 - nearest.limit() - kRounding);
  for (int64_t block = 0; block < n_blocks; ++block) {
    if (bounds->of_block[block] >= least) each_row(block, least, others);
    if (static_cast<int64_t>(others.size()) > index.n_rows() / kMostCompared) return false;
  }
  std::sort(others.begin(), others.end());
  compare(others);
  return true;
}

// The nearest by any metric, of rows that are all compared.
void nearest_of_all(const SparseQuery& x, const InvertedIndex& index, const SearchedRows& of, Metric metric,
                    Nearest& nearest) {
  const Ids& rows = of.rows;
  const auto n_rows = static_cast<int64_t>(rows.shape(0));
  for (int64_t i = 0; i < n_rows; i += kBlock) {
    const int64_t stop = std::min(n_rows, i + kBlock);
    // Most rows are too far, and blocks without a near one are passed over at a glance.
    if (metric == kCosine && of.in_a_row &&
        surely_beyond(nearest.limit(),
                      x.quick_cosine(by_level<greatest_product>(x.sums()->dot.data(), index.inverse_norms(), rows(i),
                                                                rows(i) + (stop - i)))))
      continue;
    for (int64_t j = i; j < stop; ++j) {
      const Shared shared = x.shared(rows(j));
      if (metric != kCosine || !surely_beyond(nearest.limit(), x.quick_cosine(rows(j), shared)))
        nearest.push({x.key(metric, rows(j), shared), rows(j)});
    }
  }
}

}  // namespace

NearestRows nearest_rows_sparse(const InvertedIndex& index, const CsrView& view, const SearchedRows& rows, int k,
                                int metric_id, int n_threads) {
  const Metric metric = require_metric(metric_id);
  const SparseRows X = index.require_queries(view);
  NearestRows out = room_for(X.n_rows, k);
  const bool has_bounds = metric == kCosine && index.has_bounds() && rows.ascend;
  parallel_for(X.n_rows, n_threads, 4, [&](int64_t begin, int64_t end, int) {
    Nearest nearest(k), likely(k);
    for (int64_t q = begin; q < end; ++q) {
      nearest.reset();
      if (!has_bounds || !nearest_by_bounds(index, X.row(q), rows, likely, nearest)) {
        nearest.reset();
        nearest_of_all({index, X.row(q), metric == kL1, InvertedIndex::kAny}, index, rows, metric, nearest);
      }
      nearest.finish();
      nearest.write(metric, q, out);
    }
  });
  return out;
}

NearestRows nearest_rows_dense(In2<float> X, Values sq_norm, In2<float> Q, Ids rows, int k, int metric_id,
                               In2<int32_t> proposals, In1<double> bounds, int n_threads) {
  const auto n_proposed = static_cast<int64_t>(proposals.shape(1));
  require(Q.shape(1) == X.shape(1), "X must have as many features as the training rows");
  require(sq_norm.shape(0) == X.shape(0), "sq_norm must have one entry a row");
  require(proposals.shape(0) == Q.shape(0) && bounds.shape(0) == Q.shape(0), "proposals must have one list a query");
  const Metric metric = require_metric(metric_id);
  require_in_range(rows, X.shape(0), "rows");
  NearestRows out = room_for(Q.shape(0), k);
  Wanted wanted{};
  wanted[metric] = true;
  std::vector<char> allowed(X.shape(0), 0);
  for (size_t i = 0; i < rows.shape(0); ++i) allowed[rows(i)] = 1;
  std::vector<DenseQuery> queries(std::max(1, n_threads));
  parallel_for(Q.shape(0), n_threads, 4, [&](int64_t begin, int64_t end, int worker) {
    DenseQuery& x = queries[worker];
    Nearest nearest(k);
    for (int64_t q = begin; q < end; ++q) {
      x.open(X, sq_norm, Q.data() + q * Q.shape(1), wanted);
      const auto consider = [&](const int32_t* list, int64_t count) {
        x.compute(list, count);
        nearest.reset();
        for (int64_t i = 0; i < count; ++i)
          if (allowed[list[i]]) nearest.push({x.key(metric, list[i]), list[i]});
        nearest.finish();
      };
      consider(proposals.data() + q * n_proposed, n_proposed);
      // A row left out could still win a tie at the k-th place by its smaller number.
      if (!(nearest.full() && nearest.worst() < bounds(q))) consider(rows.data(), rows.shape(0));
      nearest.write(metric, q, out);
    }
  });
  return out;
}

namespace {

// The squared L2 distances from x to some rows of X, ids -1 left out; how many there were.
METARANK_KERNEL int64_t keys_of_proposals(const float* x, const float* X, int64_t d, const int32_t* ids,
                                               int64_t count, Neighbor* out) {
  int64_t n = 0;
  for (int64_t i = 0; i < count; ++i)
    if (ids[i] >= 0) out[n++] = {squared_l2(x, X + ids[i] * d, d), ids[i]};
  return n;
}

}  // namespace

NearestRows nearest_proposed_dense(In2<float> X, In2<float> Q, In2<int32_t> proposals, int k, int n_threads) {
  const int64_t n = X.shape(0), d = X.shape(1), n_proposed = proposals.shape(1);
  require(Q.shape(1) == X.shape(1), "X must have as many features as the training rows");
  require(proposals.shape(0) == Q.shape(0), "proposals must have one list a query");
  for (size_t i = 0; i < proposals.size(); ++i)
    require(proposals.data()[i] >= -1 && proposals.data()[i] < n, "proposals must be row numbers, or -1");
  NearestRows out = room_for(Q.shape(0), k);
  parallel_for(Q.shape(0), n_threads, 4, [&](int64_t begin, int64_t end, int) {
    Nearest nearest(k);
    std::vector<Neighbor> candidates(n_proposed);
    for (int64_t q = begin; q < end; ++q) {
      const int64_t count = by_level<keys_of_proposals>(
          Q.data() + q * d, X.data(), d, proposals.data() + q * n_proposed, n_proposed, candidates.data());
      nearest.reset();
      for (int64_t i = 0; i < count; ++i) nearest.push(candidates[i]);
      nearest.finish();
      nearest.write(kL2, q, out);
    }
  });
  return out;
}

// --- the nearest of a label's rows ----------------------------------------------

namespace {

struct Pairs : LabelPairs {
  int64_t n_pairs() const { return static_cast<int64_t>(pair_labels.shape(0)); }
  int64_t n_labels() const { return static_cast<int64_t>(label_indptr.shape(0)) - 1; }

  void check(int64_t n_queries) const {
    require(label_indptr.shape(0) >= 1, "label_indptr must not be empty");
    require_pairs(pair_indptr, pair_labels, n_queries, n_labels());
  }
  std::pair<const int32_t*, int64_t> rows_of(int32_t label) const {
    const int64_t begin = label_indptr(label), end = label_indptr(label + 1);
    require(0 <= begin && begin <= end && end <= static_cast<int64_t>(label_rows.shape(0)),
            "label_indptr must not decrease nor exceed label_rows");
    return {label_rows.data() + begin, end - begin};
  }
};

// Which numbers of a sorted list are written out: its orders[j]-th smallest, and the means of its first means[j].
// Column-major: one contiguous array a column.
struct Columns {
  std::vector<Metric> metrics;
  std::vector<int> orders, means;
  int k = 0;
  Wanted wanted{};
  int64_t n_pairs;
  std::vector<float> values;

  Columns(const NeighborColumns& columns, int64_t n_pairs)
      : orders(columns.orders), means(columns.means), n_pairs(n_pairs) {
    for (const int metric : columns.metrics) {
      metrics.push_back(require_metric(metric));
      wanted[metric] = true;
    }
    for (const auto* list : {&orders, &means})
      for (const int j : *list) {
        require(j >= 1, "orders and means must be positive");
        k = std::max(k, j);
      }
    require(k >= 1, "orders and means must not both be empty");
    values.resize(count() * n_pairs);
  }

  size_t per_metric() const { return orders.size() + means.size(); }
  size_t count() const { return metrics.size() * per_metric(); }

  // `far` stands for every distance of a label without a point; short lists are padded with their last value.
  void write(size_t slot, const Smallest& nearest, double far, int64_t pair) {
    float* column = values.data() + slot * per_metric() * n_pairs + pair;
    const int last = nearest.size() - 1;
    const auto distance = [&](int j) {
      return distance_of(metrics[slot], last < 0 ? far : nearest[std::min(j, last)]);
    };
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

Array2<float> label_neighbors_sparse(const InvertedIndex& index, const CsrView& view, const LabelPairs& of,
                                     const NeighborColumns& wanted, int n_threads) {
  const SparseRows X = index.require_queries(view);
  const Pairs pairs{of};
  pairs.check(X.n_rows);
  Columns columns(wanted, pairs.n_pairs());
  parallel_for(X.n_rows, n_threads, 4, [&](int64_t begin, int64_t end, int) {
    std::vector<Smallest> nearest(columns.metrics.size(), Smallest(columns.k));
    for (int64_t q = begin; q < end; ++q) {
      int64_t n_asked = 0;
      for (int64_t p = pairs.pair_indptr(q); p < pairs.pair_indptr(q + 1); ++p)
        n_asked += pairs.rows_of(pairs.pair_labels(p)).second;
      const SparseQuery x(index, X.row(q), columns.wanted[kL1], n_asked);
      for (int64_t p = pairs.pair_indptr(q); p < pairs.pair_indptr(q + 1); ++p) {
        for (auto& list : nearest) list.reset();
        const auto [rows, count] = pairs.rows_of(pairs.pair_labels(p));
        for (int64_t i = 0; i < count; ++i) {
          const int32_t y = rows[i];
          require(y >= 0 && y < index.n_rows(), "label_rows must lie in [0, n)");
          const Shared shared = x.shared(y);
          for (size_t a = 0; a < nearest.size(); ++a)
            if (columns.metrics[a] != kCosine || !nearest[a].full() ||
                !(shared.dot == 0.0 ? nearest[a].worst() <= 1.0
                                    : surely_beyond(nearest[a].worst(), x.quick_cosine(y, shared))))
              nearest[a].push(x.key(columns.metrics[a], y, shared));
        }
        for (size_t a = 0; a < nearest.size(); ++a)
          columns.write(a, nearest[a],
                        far_key(columns.metrics[a], x.sq_x, x.l1_x, index.max_sq_norm(), index.max_l1_norm()), p);
      }
    }
  });
  return to_array(std::move(columns.values), columns.count(), columns.n_pairs);
}

namespace {

// One worker's search among dense points, pair by pair of a query.
class LabelSearch {
 public:
  LabelSearch(const DensePoints& points, const Pairs& pairs, const Proposals& proposals, Columns& columns)
      : points_(points), pairs_(pairs), proposals_(proposals), columns_(columns),
        n_proposed_(static_cast<int64_t>(proposals.rows.shape(2))), position_(pairs.n_labels(), -1),
        every_(n_proposed_ == 0 ? points.X.shape(0) : 0), scanned_(columns.metrics.size(), Smallest(columns.k)) {
    std::iota(every_.begin(), every_.end(), 0);
  }

  void search(const float* x, int64_t q) {
    const auto d = static_cast<int64_t>(points_.X.shape(1));
    query_.open(points_.X, points_.sq_norm, x, columns_.wanted);
    const double l1_x = sum_of_magnitudes(x, d);
    const int64_t first = pairs_.pair_indptr(q), last = pairs_.pair_indptr(q + 1);
    if (n_proposed_ > 0)
      look_at_proposals(q, first, last);
    else
      look_at_all(first, last);
    const size_t n_metrics = columns_.metrics.size();
    for (int64_t p = first; p < last; ++p) {
      const auto [points, count] = pairs_.rows_of(pairs_.pair_labels(p));
      const size_t at = (p - first) * n_metrics;
      bool complete = n_proposed_ > 0;
      for (size_t a = 0; a < n_metrics && complete; ++a) complete = certified(at + a, a, q, count);
      if (!complete) {
        query_.compute(points, count);
        for (size_t a = 0; a < n_metrics; ++a) {
          scanned_[a].reset();
          for (int64_t i = 0; i < count; ++i) scanned_[a].push(query_.key(columns_.metrics[a], points[i]));
        }
      }
      for (size_t a = 0; a < n_metrics; ++a)
        columns_.write(a, complete ? lists_[at + a] : scanned_[a],
                       far_key(columns_.metrics[a], query_.sq_x, l1_x, points_.max_sq_norm, points_.max_l1_norm), p);
    }
  }

 private:
  // The labels' points among the rows proposed.
  void look_at_proposals(int64_t q, int64_t first, int64_t last) {
    const size_t n_metrics = columns_.metrics.size();
    lists_.assign((last - first) * n_metrics, Smallest(columns_.k));
    met_.assign(lists_.size(), 0);
    for (int64_t p = first; p < last; ++p) position_[pairs_.pair_labels(p)] = static_cast<int32_t>(p - first);
    for (size_t a = 0; a < n_metrics; ++a) {
      const int32_t* proposed = proposals_.rows.data() + (a * proposals_.rows.shape(1) + q) * n_proposed_;
      query_.compute(proposed, n_proposed_);
      for (int64_t i = 0; i < n_proposed_; ++i) {
        const int64_t b = points_.row_indptr(proposed[i]), e = points_.row_indptr(proposed[i] + 1);
        require(0 <= b && b <= e && e <= static_cast<int64_t>(points_.row_labels.shape(0)),
                "row_indptr must not decrease nor exceed row_labels");
        for (int64_t t = b; t < e; ++t) {
          const int32_t label = points_.row_labels(t);
          require(label >= 0 && label < pairs_.n_labels(), "row_labels must lie in [0, n_labels)");
          if (position_[label] < 0) continue;
          const size_t at = position_[label] * n_metrics + a;
          lists_[at].push(query_.key(columns_.metrics[a], proposed[i]));
          ++met_[at];
        }
      }
    }
    for (int64_t p = first; p < last; ++p) position_[pairs_.pair_labels(p)] = -1;
  }

  // All rows in memory's order, where the labels have as many points.
  void look_at_all(int64_t first, int64_t last) {
    int64_t points = 0;
    for (int64_t p = first; p < last; ++p) points += pairs_.rows_of(pairs_.pair_labels(p)).second;
    if (points >= static_cast<int64_t>(every_.size())) query_.compute(every_.data(), every_.size());
  }

  // Complete if no point of the label was left out, or none of those can come before the k-th.
  bool certified(size_t at, size_t a, int64_t q, int64_t count) const {
    return met_[at] == count || (lists_[at].full() && lists_[at].worst() <= proposals_.bounds(a, q));
  }

  const DensePoints& points_;
  const Pairs& pairs_;
  const Proposals& proposals_;
  Columns& columns_;
  int64_t n_proposed_;
  DenseQuery query_;
  std::vector<int32_t> position_;  // by label: its place in the query's list, or -1
  std::vector<int32_t> every_;
  std::vector<Smallest> lists_;         // by place in the query's list and metric
  std::vector<int64_t> met_;       // how many points of the label were proposed
  std::vector<Smallest> scanned_;
};

}  // namespace

Array2<float> label_neighbors_dense(const DensePoints& points, In2<float> Q, const LabelPairs& of,
                                    const NeighborColumns& wanted, const Proposals& proposals, int n_threads) {
  require(Q.shape(1) == points.X.shape(1), "X must have as many features as the training rows");
  require(points.sq_norm.shape(0) == points.X.shape(0), "sq_norm must have one entry a row");
  require(points.row_indptr.shape(0) == points.X.shape(0) + 1, "row_indptr must have one entry a row and one more");
  const Pairs pairs{of};
  pairs.check(Q.shape(0));
  Columns columns(wanted, pairs.n_pairs());
  require(proposals.rows.shape(0) == columns.metrics.size() && proposals.rows.shape(1) == Q.shape(0) &&
              proposals.bounds.shape(0) == columns.metrics.size() && proposals.bounds.shape(1) == Q.shape(0),
          "proposals must have shape (metrics, queries, M), bounds (metrics, queries)");
  std::vector<std::unique_ptr<LabelSearch>> workers(std::max(1, n_threads));
  parallel_for(Q.shape(0), n_threads, 4, [&](int64_t begin, int64_t end, int w) {
    if (!workers[w]) workers[w] = std::make_unique<LabelSearch>(points, pairs, proposals, columns);
    for (int64_t q = begin; q < end; ++q) workers[w]->search(Q.data() + q * Q.shape(1), q);
  });
  return to_array(std::move(columns.values), columns.count(), columns.n_pairs);
}

std::tuple<Array1<float>, Array1<float>> row_norms(In2<float> X) {
  const int64_t n = X.shape(0), d = X.shape(1);
  std::vector<float> sq(n), magnitude(n);
  for (int64_t i = 0; i < n; ++i) {
    sq[i] = dot(X.data() + i * d, X.data() + i * d, d);
    magnitude[i] = sum_of_magnitudes(X.data() + i * d, d);
  }
  return {to_array(std::move(sq)), to_array(std::move(magnitude))};
}

}  // namespace metarank
