// The nearest training rows of a query, whatever their labels, and the votes of their labels.
#include <algorithm>
#include <array>

#include "bindings.h"
#include "distances.h"
#include "inverted_index.h"

namespace metarank {

namespace {

struct Neighbor {
  double key;
  std::int32_t row;
  bool operator<(const Neighbor& other) const { return key < other.key || (key == other.key && row < other.row); }
};

// The k first of the neighbours pushed, by (key, row).
class Nearest {
 public:
  explicit Nearest(int k) : k_(static_cast<std::size_t>(k)) { list_.reserve(k_ + 1); }
  void reset() { list_.clear(); }
  bool full() const { return list_.size() == k_; }
  double worst() const { return list_.back().key; }

  void push(const Neighbor& candidate) {
    if (full()) {
      if (!(candidate < list_.back())) return;
      list_.pop_back();
    }
    list_.insert(std::upper_bound(list_.begin(), list_.end(), candidate), candidate);
  }

  // Rows padded with -1, distances with 0.
  void write(Metric metric, std::int32_t* rows, float* distances) const {
    for (std::size_t j = 0; j < k_; ++j) {
      rows[j] = j < list_.size() ? list_[j].row : -1;
      distances[j] = j < list_.size() ? distance_of(metric, list_[j].key) : 0.0f;
    }
  }

 private:
  std::size_t k_;
  std::vector<Neighbor> list_;
};

Metric checked_metric(int metric) {
  require(metric >= 0 && metric < kMetrics, "metric must be l2, l1 or cosine");
  return static_cast<Metric>(metric);
}

void check_rows(const In1<std::int32_t>& rows, std::int64_t n) {
  for (std::size_t i = 0; i < rows.shape(0); ++i)
    require(rows.data()[i] >= 0 && rows.data()[i] < n, "rows must lie in [0, n)");
}

nb::tuple nearest_rows_sparse(const InvertedIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
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
  {
    nb::gil_scoped_release release;
    std::vector<std::vector<Overlap>> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
    parallel_for(n_queries, n_threads, 4, [&](std::int64_t begin, std::int64_t end, int worker) {
      auto& sums = scratch[static_cast<std::size_t>(worker)];
      sums.resize(static_cast<std::size_t>(index.n_rows()));
      Nearest nearest(k);
      for (std::int64_t q = begin; q < end; ++q) {
        const SparseRow x{indices.data() + indptr.data()[q], data.data() + indptr.data()[q],
                          indptr.data()[q + 1] - indptr.data()[q]};
        const double sq_x = x.sq_norm(), l1_x = x.l1_norm();
        index.accumulate(x, sums.data());
        nearest.reset();
        for (std::size_t i = 0; i < rows.shape(0); ++i) {
          const std::int32_t y = rows.data()[i];
          const Overlap& shared = sums[static_cast<std::size_t>(y)];
          double key = 0.0;
          switch (metric) {
            case kL2: key = std::max(0.0, sq_x + index.sq_norm()[y] - 2.0 * shared.dot); break;
            case kL1: key = std::max(0.0, l1_x + index.l1_norm()[y] + shared.l1); break;
            case kCosine: key = cosine_distance(shared.dot, sq_x, index.sq_norm()[y]); break;
          }
          nearest.push({key, y});
        }
        nearest.write(metric, ids.data() + q * k, distances.data() + q * k);
        index.clear(x, sums.data());
      }
    });
  }
  return nb::make_tuple(to_numpy(std::move(ids), static_cast<std::size_t>(n_queries), width),
                        to_numpy(std::move(distances), static_cast<std::size_t>(n_queries), width));
}

// proposals (queries, M): rows to look at first; bounds: no row that is not proposed has a smaller key.
nb::tuple nearest_rows_dense(In2<float> X, In1<float> sq_norm, In2<float> Q, In1<std::int32_t> rows, int k,
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
  {
    nb::gil_scoped_release release;
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
        };
        consider(proposals.data() + q * n_proposed, n_proposed);
        // A row left out could still win a tie at the k-th place by its smaller number.
        if (!(nearest.full() && nearest.worst() < bounds.data()[q]))
          consider(rows.data(), static_cast<std::int64_t>(rows.shape(0)));
        nearest.write(metric, ids.data() + q * k, distances.data() + q * k);
      }
    });
  }
  return nb::make_tuple(to_numpy(std::move(ids), static_cast<std::size_t>(n_queries), width),
                        to_numpy(std::move(distances), static_cast<std::size_t>(n_queries), width));
}

// The neighbours of each query with their weights, and the labels of every training row.
// A neighbour of weight 0 (or number -1) has no vote.
struct Voters {
  In2<std::int32_t> rows;
  In2<float> weights;
  In1<std::int64_t> row_indptr;
  In1<std::int32_t> row_labels;
  std::int64_t n_labels;

  void check() const {
    require(rows.shape(0) == weights.shape(0) && rows.shape(1) == weights.shape(1),
            "neighbours and weights must have the same shape");
    require(row_indptr.shape(0) >= 1, "row_indptr must not be empty");
  }

  // Calls visit(label, weight) for each label of the first k neighbours; returns (voters, sum of weights).
  template <typename Visit>
  std::pair<std::int64_t, double> count(std::int64_t query, std::int64_t k, const Visit& visit) const {
    const auto width = static_cast<std::int64_t>(rows.shape(1));
    std::int64_t voters = 0;
    double total = 0.0;
    for (std::int64_t j = 0; j < std::min(k, width); ++j) {
      const std::int32_t row = rows.data()[query * width + j];
      const double weight = weights.data()[query * width + j];
      if (row < 0 || !(weight > 0.0)) continue;
      require(row + 1 < static_cast<std::int64_t>(row_indptr.shape(0)), "neighbours must be row numbers");
      const std::int64_t begin = row_indptr.data()[row], end = row_indptr.data()[row + 1];
      require(0 <= begin && begin <= end && end <= static_cast<std::int64_t>(row_labels.shape(0)),
              "row_indptr must not decrease nor exceed row_labels");
      for (std::int64_t p = begin; p < end; ++p) {
        const std::int32_t label = row_labels.data()[p];
        require(label >= 0 && label < n_labels, "row_labels must lie in [0, n_labels)");
        visit(label, weight);
      }
      ++voters;
      total += weight;
    }
    return {voters, total};
  }
};

// For each k of `ks` two columns: share of the k neighbours that carry the label, and the share of their weight.
Array2<float> neighbor_votes(In2<std::int32_t> rows, In2<float> weights, In1<std::int64_t> row_indptr,
                             In1<std::int32_t> row_labels, std::int64_t n_labels, In1<std::int64_t> pair_indptr,
                             In1<std::int32_t> pair_labels, const std::vector<int>& ks, int n_threads) {
  const Voters voters{rows, weights, row_indptr, row_labels, n_labels};
  voters.check();
  const auto n_queries = static_cast<std::int64_t>(rows.shape(0)), m = static_cast<std::int64_t>(pair_labels.shape(0));
  require(static_cast<std::int64_t>(pair_indptr.shape(0)) == n_queries + 1, "candidates must have one list a row of X");
  require(pair_indptr.data()[0] == 0 && pair_indptr.data()[n_queries] == m,
          "candidates.indptr must start at 0 and end at the number of pairs");
  for (std::int64_t q = 0; q < n_queries; ++q)
    require(pair_indptr.data()[q] <= pair_indptr.data()[q + 1], "candidates.indptr must not decrease");
  for (std::int64_t p = 0; p < m; ++p)
    require(pair_labels.data()[p] >= 0 && pair_labels.data()[p] < n_labels,
            "candidates.labels must lie in [0, n_labels)");
  std::vector<float> out(2 * ks.size() * static_cast<std::size_t>(m));
  {
    nb::gil_scoped_release release;
    struct Tally {
      double votes = 0.0, weight = 0.0;
    };
    std::vector<std::vector<Tally>> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
    parallel_for(n_queries, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int worker) {
      auto& tally = scratch[static_cast<std::size_t>(worker)];
      tally.resize(static_cast<std::size_t>(n_labels));
      for (std::int64_t q = begin; q < end; ++q)
        for (std::size_t c = 0; c < ks.size(); ++c) {
          const auto [n_voters, total] = voters.count(q, ks[c], [&](std::int32_t label, double weight) {
            tally[static_cast<std::size_t>(label)].votes += 1.0;
            tally[static_cast<std::size_t>(label)].weight += weight;
          });
          float* column = out.data() + 2 * static_cast<std::int64_t>(c) * m;
          for (std::int64_t p = pair_indptr.data()[q]; p < pair_indptr.data()[q + 1] && n_voters > 0; ++p) {
            const Tally& t = tally[static_cast<std::size_t>(pair_labels.data()[p])];
            column[p] = static_cast<float>(t.votes / static_cast<double>(n_voters));
            column[m + p] = static_cast<float>(t.weight / total);
          }
          voters.count(q, ks[c],
                       [&](std::int32_t label, double) { tally[static_cast<std::size_t>(label)] = Tally{}; });
        }
    });
  }
  return to_numpy(std::move(out), 2 * ks.size(), static_cast<std::size_t>(m));
}

// The k labels of greatest score = share of the neighbours' weight + tie * frequency, ties to the smaller label;
// lists are completed from `popular`, the labels by decreasing frequency. Returns labels (ascending) and scores.
nb::tuple vote_shortlist(In2<std::int32_t> rows, In2<float> weights, In1<std::int64_t> row_indptr,
                         In1<std::int32_t> row_labels, In1<std::int32_t> popular, In1<double> frequency, double tie,
                         int k, int n_threads) {
  const auto n_labels = static_cast<std::int64_t>(frequency.shape(0));
  const Voters voters{rows, weights, row_indptr, row_labels, n_labels};
  voters.check();
  require(popular.shape(0) == frequency.shape(0), "popular must list every label");
  for (std::int64_t l = 0; l < n_labels; ++l)
    require(popular.data()[l] >= 0 && popular.data()[l] < n_labels, "popular must lie in [0, n_labels)");
  require(k >= 1 && k <= n_labels, "k must lie in [1, n_labels]");
  const auto n_queries = static_cast<std::int64_t>(rows.shape(0));
  const auto width = static_cast<std::size_t>(k);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(n_queries) * width);
  std::vector<float> scores(labels.size());
  {
    nb::gil_scoped_release release;
    std::vector<std::vector<double>> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
    parallel_for(n_queries, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int worker) {
      auto& weight_of = scratch[static_cast<std::size_t>(worker)];
      weight_of.resize(static_cast<std::size_t>(n_labels));
      std::vector<std::int32_t> list;
      for (std::int64_t q = begin; q < end; ++q) {
        list.clear();
        const auto [n_voters, total] =
            voters.count(q, static_cast<std::int64_t>(rows.shape(1)), [&](std::int32_t label, double weight) {
              double& sum = weight_of[static_cast<std::size_t>(label)];
              if (sum == 0.0) list.push_back(label);
              sum += weight;
            });
        auto score = [&, total = total](std::int32_t label) {
          const auto l = static_cast<std::size_t>(label);
          return (total > 0.0 ? weight_of[l] / total : 0.0) + tie * frequency.data()[l];
        };
        const std::vector<std::int32_t> voted = list;
        if (list.size() > width) {
          std::nth_element(list.begin(), list.begin() + k, list.end(), [&](std::int32_t a, std::int32_t b) {
            const double sa = score(a), sb = score(b);
            return sa > sb || (sa == sb && a < b);
          });
          list.resize(width);
        }
        for (std::int64_t l = 0; list.size() < width; ++l)
          if (weight_of[static_cast<std::size_t>(popular.data()[l])] == 0.0) list.push_back(popular.data()[l]);
        std::sort(list.begin(), list.end());
        for (std::size_t j = 0; j < width; ++j) {
          labels[static_cast<std::size_t>(q) * width + j] = list[j];
          scores[static_cast<std::size_t>(q) * width + j] = static_cast<float>(score(list[j]));
        }
        for (const std::int32_t label : voted) weight_of[static_cast<std::size_t>(label)] = 0.0;
      }
    });
  }
  return nb::make_tuple(to_numpy(std::move(labels), static_cast<std::size_t>(n_queries), width),
                        to_numpy(std::move(scores), static_cast<std::size_t>(n_queries), width));
}

}  // namespace

void bind_neighbor_votes(nb::module_& m) {
  m.def("nearest_rows_sparse", &nearest_rows_sparse, nb::arg("index"), nb::arg("indptr").noconvert(),
        nb::arg("indices").noconvert(), nb::arg("data").noconvert(), nb::arg("rows").noconvert(), nb::arg("k"),
        nb::arg("metric"), nb::arg("n_threads"));
  m.def("nearest_rows_dense", &nearest_rows_dense, nb::arg("X").noconvert(), nb::arg("sq_norm").noconvert(),
        nb::arg("Q").noconvert(), nb::arg("rows").noconvert(), nb::arg("k"), nb::arg("metric"),
        nb::arg("proposals").noconvert(), nb::arg("bounds").noconvert(), nb::arg("n_threads"));
  m.def("neighbor_votes", &neighbor_votes, nb::arg("rows").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("row_indptr").noconvert(), nb::arg("row_labels").noconvert(), nb::arg("n_labels"),
        nb::arg("pair_indptr").noconvert(), nb::arg("pair_labels").noconvert(), nb::arg("ks"), nb::arg("n_threads"));
  m.def("vote_shortlist", &vote_shortlist, nb::arg("rows").noconvert(), nb::arg("weights").noconvert(),
        nb::arg("row_indptr").noconvert(), nb::arg("row_labels").noconvert(), nb::arg("popular").noconvert(),
        nb::arg("frequency").noconvert(), nb::arg("tie"), nb::arg("k"), nb::arg("n_threads"));
}

}  // namespace metarank
