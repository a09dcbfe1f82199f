// The nearest training rows of a query, whatever their labels, and the votes of their labels.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

#include <nanobind/stl/optional.h>

#include "bindings.h"
#include "distances.h"
#include "inverted_index.h"
#include "lists.h"
#include "pairs.h"
#include "scratch_pool.h"
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

METARANK_DISPATCH double greatest_product(const double* a, const double* b, std::int64_t begin, std::int64_t end) {
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
            if (surely_beyond(nearest.limit(), greatest_product(dot, index.inverse_norms(), y, stop) * inverse_x)) continue;
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
          nearest.finish();
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

// The squared L2 distances from x to some rows of X, ids -1 left out: how many there were, at keys[0 ...] with their ids.
METARANK_DISPATCH std::int64_t keys_of_proposals(const float* x, const float* X, std::int64_t d, const std::int32_t* ids,
                                                 std::int64_t count, Neighbor* found) {
  std::int64_t n_found = 0;
  for (std::int64_t i = 0; i < count; ++i)
    if (ids[i] >= 0) found[n_found++] = {squared_l2(x, X + ids[i] * d, d), ids[i]};
  return n_found;
}

// The k nearest by L2 distance of the rows proposed for each query (queries, M), -1 where there is none; no other row
// is read. Their keys are those of nearest_rows_dense, to the byte.
nb::tuple nearest_proposed_dense(In2<float> X, In2<float> Q, In2<std::int32_t> proposals, int k, int n_threads) {
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
  {
    nb::gil_scoped_release release;
    parallel_for(n_queries, n_threads, 4, [&](std::int64_t begin, std::int64_t end, int) {
      Nearest nearest(k);
      std::vector<Neighbor> found(static_cast<std::size_t>(n_proposed));
      for (std::int64_t q = begin; q < end; ++q) {
        const std::int64_t n_found = keys_of_proposals(Q.data() + q * d, X.data(), d, proposals.data() + q * n_proposed,
                                                       n_proposed, found.data());
        nearest.reset();
        for (std::int64_t i = 0; i < n_found; ++i) nearest.push(found[static_cast<std::size_t>(i)]);
        nearest.finish();
        nearest.write(kL2, ids.data() + q * k, distances.data() + q * k);
      }
    });
  }
  return nb::make_tuple(to_numpy(std::move(ids), static_cast<std::size_t>(n_queries), width),
                        to_numpy(std::move(distances), static_cast<std::size_t>(n_queries), width));
}

// What the labels are called: one row of words a label.
struct LabelText {
  In1<std::int64_t> indptr;
  In1<std::int32_t> words;
  In1<float> values;
  std::int64_t n_words;
};

// The labels of the training rows as votes of the rows. A neighbour of weight 0 (or number -1) has none. A vote for a
// label counts `worth` of it, or 1.
class Votes {
 public:
  // `popular`: all labels by decreasing frequency.
  Votes(const In1<std::int64_t>& row_indptr, const In1<std::int32_t>& row_labels, const In1<std::int32_t>& popular,
        const In1<double>& frequency, const std::optional<In1<double>>& worth, const std::optional<LabelText>& text)
      : row_indptr_(row_indptr),
        row_labels_(row_labels),
        popular_(popular),
        frequency_(frequency),
        worth_(worth),
        text_(text) {
    require_indptr(row_indptr, static_cast<std::int64_t>(row_labels.shape(0)), "row_indptr");
    require(popular.shape(0) == frequency.shape(0), "popular must list every label");
    require(!worth || worth->shape(0) == frequency.shape(0), "worth must have one entry a label");
    require_in_range(popular, n_labels(), "popular");
    // Lists are completed from it until they are full.
    std::vector<bool> listed(popular.shape(0), false);
    for (std::size_t i = 0; i < listed.size(); ++i) listed[static_cast<std::size_t>(popular.data()[i])] = true;
    require(std::find(listed.begin(), listed.end(), false) == listed.end(), "popular must list every label");
    require_finite(frequency, "frequency");
    if (worth) require_finite(*worth, "worth");
    require_in_range(row_labels, n_labels(), "row_labels");
    if (!text) return;
    require(static_cast<std::int64_t>(text->indptr.shape(0)) == n_labels() + 1, "text must have one row a label");
    require_indptr(text->indptr, static_cast<std::int64_t>(text->words.shape(0)), "text.indptr");
    require(text->words.shape(0) == text->values.shape(0), "text.indices and .data must have the same length");
    require_in_range(text->words, text->n_words, "text.indices");
  }

  std::int64_t n_labels() const { return static_cast<std::int64_t>(frequency_.shape(0)); }

  // For each k of `ks` two columns (2 len(ks), m): share of the k neighbours that carry the label, and the share of
  // their weight times the label's worth. The labels of a list ascend.
  Array2<float> columns(const In2<std::int32_t>& rows, const In2<float>& weights, const In1<std::int64_t>& indptr,
                        const In1<std::int32_t>& labels, const std::vector<int>& ks, int n_threads) const {
    check(rows, weights);
    require(indptr.shape(0) == rows.shape(0) + 1, "candidates must have one list a row of X");
    require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "candidates.indptr");
    require_in_range(labels, n_labels(), "candidates.labels");
    const auto n = static_cast<std::int64_t>(rows.shape(0)), m = static_cast<std::int64_t>(labels.shape(0));
    std::vector<float> out(2 * ks.size() * static_cast<std::size_t>(m));
    std::vector<std::size_t> by_k(ks.size());
    std::iota(by_k.begin(), by_k.end(), 0);
    std::stable_sort(by_k.begin(), by_k.end(), [&](std::size_t a, std::size_t b) { return ks[a] < ks[b]; });
    {
      nb::gil_scoped_release release;
      parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
        std::vector<double> votes, weight;  // by place in the list
        for (std::int64_t q = begin; q < end; ++q) {
          const std::int64_t first = indptr.data()[q];
          const std::int32_t *list = labels.data() + first, *list_end = labels.data() + indptr.data()[q + 1];
          votes.assign(static_cast<std::size_t>(list_end - list), 0.0);
          weight.assign(votes.size(), 0.0);
          Total total;
          // One run over the neighbours: the first k1 of them, then on to the first k2, ...
          std::int64_t counted = 0;
          for (const std::size_t c : by_k) {
            for_each(rows, weights, q, counted, ks[c], total, [&](std::int32_t label, double w) {
              const std::int32_t* at = std::lower_bound(list, list_end, label);
              if (at == list_end || *at != label) return;
              votes[static_cast<std::size_t>(at - list)] += 1.0;
              weight[static_cast<std::size_t>(at - list)] += w;
            });
            counted = ks[c];
            if (total.voters == 0) continue;
            float* column = out.data() + 2 * static_cast<std::int64_t>(c) * m + first;
            for (std::size_t p = 0; p < votes.size(); ++p) {
              column[p] = static_cast<float>(votes[p] / static_cast<double>(total.voters));
              column[static_cast<std::size_t>(m) + p] = static_cast<float>(weight[p] / total.weight * worth(list[p]));
            }
          }
        }
      });
    }
    return to_numpy(std::move(out), 2 * ks.size(), static_cast<std::size_t>(m));
  }

  // How alike a label's name is to the names of the other labels voted for (m): the sum over them of share of the
  // neighbours' weight times the product of the two names' rows.
  std::vector<float> kin_by_name(const In2<std::int32_t>& rows, const In2<float>& weights, const In1<std::int64_t>& indptr,
                                 const In1<std::int32_t>& labels, int n_threads) const {
    require(text_.has_value(), "votes by name need the labels' text");
    check(rows, weights);
    require(indptr.shape(0) == rows.shape(0) + 1, "candidates must have one list a row of X");
    require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "candidates.indptr");
    require_in_range(labels, n_labels(), "candidates.labels");
    const auto n = static_cast<std::int64_t>(rows.shape(0)), n_neighbors = static_cast<std::int64_t>(rows.shape(1));
    std::vector<float> out(labels.shape(0), 0.0F);
    nb::gil_scoped_release release;
    const auto for_each_word = [&](std::int32_t label, const auto& visit) {
      for (std::int64_t p = text_->indptr.data()[label]; p < text_->indptr.data()[label + 1]; ++p)
        visit(static_cast<std::size_t>(text_->words.data()[p]), static_cast<double>(text_->values.data()[p]));
    };
    parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
      auto by_label = pool_.take([] { return std::make_unique<std::vector<double>>(); });
      auto by_word = word_pool_.take([] { return std::make_unique<std::vector<double>>(); });
      by_label->resize(static_cast<std::size_t>(n_labels()));
      by_word->resize(static_cast<std::size_t>(text_->n_words));
      double *weight_of = by_label->data(), *profile = by_word->data();
      std::vector<std::int32_t> voted;
      for (std::int64_t q = begin; q < end; ++q) {
        voted.clear();
        Total total;
        for_each(rows, weights, q, 0, n_neighbors, total, [&](std::int32_t label, double w) {
          if (weight_of[label] == 0.0) voted.push_back(label);
          weight_of[label] += w;
        });
        if (voted.empty()) continue;
        for (const std::int32_t label : voted)
          for_each_word(label, [&](std::size_t word, double v) { profile[word] += weight_of[label] * v; });
        for (std::int64_t pair = indptr.data()[q]; pair < indptr.data()[q + 1]; ++pair) {
          const std::int32_t label = labels.data()[pair];
          double kin = 0.0;
          for_each_word(label, [&](std::size_t word, double v) { kin += v * (profile[word] - weight_of[label] * v); });
          out[static_cast<std::size_t>(pair)] = static_cast<float>(kin / total.weight);
        }
        for (const std::int32_t label : voted) {
          for_each_word(label, [&](std::size_t word, double) { profile[word] = 0.0; });
          weight_of[label] = 0.0;
        }
      }
      word_pool_.give_back(std::move(by_word));
      pool_.give_back(std::move(by_label));
    });
    return out;
  }

  // The k labels of greatest score = share of the neighbours' weight * worth + tie * frequency, ties to the smaller label;
  // lists are completed from `popular`. Returns labels (ascending) and scores, both (n, k).
  nb::tuple shortlist(const In2<std::int32_t>& rows, const In2<float>& weights, double tie, int k,
                      int n_threads) const {
    check(rows, weights);
    require(k >= 1 && k <= n_labels(), "k must lie in [1, n_labels]");
    const auto n = static_cast<std::int64_t>(rows.shape(0)), n_neighbors = static_cast<std::int64_t>(rows.shape(1));
    const auto width = static_cast<std::size_t>(k);
    std::vector<std::int32_t> labels(static_cast<std::size_t>(n) * width);
    std::vector<float> scores(labels.size());
    {
      nb::gil_scoped_release release;
      parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
        auto scratch = pool_.take([] { return std::make_unique<std::vector<double>>(); });
        std::vector<double>& weight_of = *scratch;
        weight_of.resize(static_cast<std::size_t>(n_labels()));
        struct Scored {
          double score;
          std::int32_t label;
        };
        std::vector<Scored> list;
        std::vector<std::int32_t> voted;
        for (std::int64_t q = begin; q < end; ++q) {
          voted.clear();
          list.clear();
          Total total;
          for_each(rows, weights, q, 0, n_neighbors, total, [&](std::int32_t label, double w) {
            double& sum = weight_of[static_cast<std::size_t>(label)];
            if (sum == 0.0) voted.push_back(label);
            sum += w;
          });
          const auto scored = [&](std::int32_t label) {
            const auto l = static_cast<std::size_t>(label);
            const double share = total.weight > 0.0 ? weight_of[l] / total.weight : 0.0;
            return Scored{share * worth(label) + tie * frequency_.data()[l], label};
          };
          for (const std::int32_t label : voted) list.push_back(scored(label));
          if (list.size() > width) {
            std::nth_element(list.begin(), list.begin() + k, list.end(), [](const Scored& a, const Scored& b) {
              return a.score > b.score || (a.score == b.score && a.label < b.label);
            });
            list.resize(width);
          }
          for (std::int64_t l = 0; list.size() < width; ++l)
            if (weight_of[static_cast<std::size_t>(popular_.data()[l])] == 0.0)
              list.push_back(scored(popular_.data()[l]));
          std::sort(list.begin(), list.end(), [](const Scored& a, const Scored& b) { return a.label < b.label; });
          for (std::size_t j = 0; j < width; ++j) {
            labels[static_cast<std::size_t>(q) * width + j] = list[j].label;
            scores[static_cast<std::size_t>(q) * width + j] = static_cast<float>(list[j].score);
          }
          for (const std::int32_t label : voted) weight_of[static_cast<std::size_t>(label)] = 0.0;
        }
        pool_.give_back(std::move(scratch));
      });
    }
    return nb::make_tuple(to_numpy(std::move(labels), static_cast<std::size_t>(n), width),
                          to_numpy(std::move(scores), static_cast<std::size_t>(n), width));
  }

 private:
  struct Total {
    std::int64_t voters = 0;
    double weight = 0.0;
  };

  double worth(std::int32_t label) const { return worth_ ? worth_->data()[label] : 1.0; }

  void check(const In2<std::int32_t>& rows, const In2<float>& weights) const {
    require(rows.shape(0) == weights.shape(0) && rows.shape(1) == weights.shape(1),
            "neighbours and weights must have the same shape");
    for (std::size_t i = 0; i < rows.size(); ++i)
      require(rows.data()[i] < static_cast<std::int64_t>(row_indptr_.shape(0)) - 1, "neighbours must be row numbers");
    for (std::size_t i = 0; i < weights.size(); ++i) require(std::isfinite(weights.data()[i]), "weights must be finite");
  }

  // Calls visit(label, weight) for each label of the neighbours first .. k - 1, and counts them.
  template <typename Visit>
  void for_each(const In2<std::int32_t>& rows, const In2<float>& weights, std::int64_t query, std::int64_t first,
                std::int64_t k, Total& total, const Visit& visit) const {
    const auto width = static_cast<std::int64_t>(rows.shape(1));
    for (std::int64_t j = first; j < std::min(k, width); ++j) {
      const std::int32_t row = rows.data()[query * width + j];
      const double weight = weights.data()[query * width + j];
      if (row < 0 || !(weight > 0.0)) continue;
      for (std::int64_t p = row_indptr_.data()[row]; p < row_indptr_.data()[row + 1]; ++p)
        visit(row_labels_.data()[p], weight);
      ++total.voters;
      total.weight += weight;
    }
  }

  In1<std::int64_t> row_indptr_;
  In1<std::int32_t> row_labels_, popular_;
  In1<double> frequency_;
  std::optional<In1<double>> worth_;
  std::optional<LabelText> text_;
  mutable ScratchPool<std::vector<double>> pool_;       // weights by label, zeros between queries
  mutable ScratchPool<std::vector<double>> word_pool_;  // and by word
};

}  // namespace

void bind_neighbor_votes(nb::module_& m) {
  m.def("nearest_rows_sparse", &nearest_rows_sparse, nb::arg("index"), nb::arg("indptr").noconvert(),
        nb::arg("indices").noconvert(), nb::arg("data").noconvert(), nb::arg("rows").noconvert(), nb::arg("k"),
        nb::arg("metric"), nb::arg("n_threads"));
  m.def("nearest_rows_dense", &nearest_rows_dense, nb::arg("X").noconvert(), nb::arg("sq_norm").noconvert(),
        nb::arg("Q").noconvert(), nb::arg("rows").noconvert(), nb::arg("k"), nb::arg("metric"),
        nb::arg("proposals").noconvert(), nb::arg("bounds").noconvert(), nb::arg("n_threads"));
  m.def("nearest_proposed_dense", &nearest_proposed_dense, nb::arg("X").noconvert(), nb::arg("Q").noconvert(),
        nb::arg("proposals").noconvert(), nb::arg("k"), nb::arg("n_threads"));
  nb::class_<Votes>(m, "Votes", "The labels of the training rows as votes.")
      .def(
          "__init__",
          [](Votes* self, const In1<std::int64_t>& row_indptr, const In1<std::int32_t>& row_labels,
             const In1<std::int32_t>& popular, const In1<double>& frequency, const std::optional<In1<double>>& worth,
             const std::optional<std::tuple<In1<std::int64_t>, In1<std::int32_t>, In1<float>, std::int64_t>>& text) {
            std::optional<LabelText> rows;
            if (text) rows = std::apply([](const auto&... parts) { return LabelText{parts...}; }, *text);
            new (self) Votes(row_indptr, row_labels, popular, frequency, worth, rows);
          },
          nb::arg("row_indptr").noconvert(), nb::arg("row_labels").noconvert(), nb::arg("popular").noconvert(),
          nb::arg("frequency").noconvert(), nb::arg("worth").noconvert() = nb::none(), nb::arg("text") = nb::none())
      .def("columns", &Votes::columns, nb::arg("rows").noconvert(), nb::arg("weights").noconvert(),
           nb::arg("pair_indptr").noconvert(), nb::arg("pair_labels").noconvert(), nb::arg("ks"), nb::arg("n_threads"))
      .def("shortlist", &Votes::shortlist, nb::arg("rows").noconvert(), nb::arg("weights").noconvert(),
           nb::arg("tie"), nb::arg("k"), nb::arg("n_threads"))
      .def(
          "kin_by_name",
          [](const Votes& self, In2<std::int32_t> rows, In2<float> weights, In1<std::int64_t> indptr,
             In1<std::int32_t> labels, int n_threads) {
            require(n_threads >= 1, "n_threads must be positive");
            return to_numpy(self.kin_by_name(rows, weights, indptr, labels, n_threads));
          },
          nb::arg("rows").noconvert(), nb::arg("weights").noconvert(), nb::arg("pair_indptr").noconvert(),
          nb::arg("pair_labels").noconvert(), nb::arg("n_threads"));
}

}  // namespace metarank
