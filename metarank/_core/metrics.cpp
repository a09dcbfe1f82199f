#include "metrics.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "lists.h"

namespace metarank {

namespace {

constexpr int64_t kBlock = 256;

// The rows of scores, none of which is NaN, which has no place in an order.
template <typename T>
struct Scores {
  int64_t n_rows, width;
  const int64_t* indptr;  // null where dense
  const int32_t* labels;
  const T* values;

  ScoreRow<T> row(int64_t i) const {
    if (indptr == nullptr) return {nullptr, values + i * width, width};
    return {labels + indptr[i], values + indptr[i], indptr[i + 1] - indptr[i]};
  }
};

template <typename T>
void require_numbers(const T* values, size_t n) {
  bool any_nan = false;
  for (size_t j = 0; j < n; ++j) any_nan |= values[j] != values[j];
  require(!any_nan, "scores must not be NaN");
}

template <typename T>
Scores<T> dense(const In2<T>& scores) {
  require_numbers(scores.data(), scores.size());
  require(scores.shape(1) <= std::numeric_limits<int32_t>::max(), "scores must have fewer than 2^31 columns");
  return {static_cast<int64_t>(scores.shape(0)), static_cast<int64_t>(scores.shape(1)), nullptr, nullptr,
          scores.data()};
}

template <typename T>
Scores<T> listed(const Indptr& indptr, const Ids& labels, const In1<T>& scores) {
  require(scores.shape(0) == labels.shape(0), "scores and labels must have the same length");
  require_numbers(scores.data(), scores.size());
  return {require_lists(indptr, labels.shape(0)), 0, indptr.data(), labels.data(), scores.data()};
}

struct Standing {
  std::vector<double> rank;
  std::vector<int64_t> last, above, not_below;

  explicit Standing(size_t n) : rank(n), last(n), above(n), not_below(n) {}
};

struct Scratch {
  std::vector<int64_t> position;  // of each relevant label in the row, -1 if not listed
  std::vector<size_t> order;      // the listed relevant labels, best first
  std::vector<int64_t> first_at, greater_at, not_less_at;
};

template <typename T>
void find_relevant(const ScoreRow<T>& row, const int32_t* relevant, size_t r, std::vector<int64_t>& position) {
  position.assign(r, -1);
  for (int64_t j = 0; j < row.n; ++j) {
    const auto* found = std::lower_bound(relevant, relevant + r, row.labels[j]);
    if (found != relevant + r && *found == row.labels[j] && row.listed(j)) position[found - relevant] = j;
  }
}

template <typename T>
void rank_row(const ScoreRow<T>& row, int64_t n_labels, const int32_t* relevant, size_t r, size_t out, Scratch& s,
              Standing& standing) {
  find_relevant(row, relevant, r, s.position);
  s.order.clear();
  for (size_t q = 0; q < r; ++q)
    if (s.position[q] >= 0) s.order.push_back(q);
  std::sort(s.order.begin(), s.order.end(),
            [&](size_t a, size_t b) { return row.before(s.position[a], s.position[b]); });

  // Bucket b counts the entries that precede the b-th relevant label but not the one before it.
  const size_t found = s.order.size();
  s.first_at.assign(found, 0);
  s.greater_at.assign(found, 0);
  s.not_less_at.assign(found, 0);
  const auto position = [&](size_t b) { return s.position[s.order[b]]; };
  const auto score = [&](size_t b) { return row.scores[position(b)]; };
  int64_t n_listed = 0;
  for (int64_t j = 0; j < row.n; ++j) {
    n_listed += row.listed(j);
    const T x = row.scores[j];
    if (found == 0 || x < score(found - 1)) continue;  // most labels stand below the last relevant one
    size_t lo = 0, hi = found - 1;
    while (lo < hi) {  // the first relevant label with a score <= x
      const size_t mid = (lo + hi) / 2;
      if (score(mid) <= x)
        hi = mid;
      else
        lo = mid + 1;
    }
    ++s.not_less_at[lo];
    size_t b = lo;
    while (b < found && score(b) == x && position(b) < j) ++b;
    if (b < found) ++s.first_at[b];
    while (b < found && score(b) == x) ++b;
    if (b < found) ++s.greater_at[b];
  }

  int64_t first = 0, greater = 0, not_less = 0;
  for (size_t b = 0, tied = 0; b < found; ++b) {
    if (score(b) != score(tied)) tied = b;
    size_t tied_end = b + 1;
    while (tied_end < found && score(tied_end) == score(b)) ++tied_end;
    first += s.first_at[b];
    greater += s.greater_at[b];
    not_less += s.not_less_at[b];
    const size_t at = out + s.order[b];
    standing.rank[at] = static_cast<double>(first);
    standing.last[at] = not_less;
    standing.above[at] = greater - static_cast<int64_t>(tied);
    standing.not_below[at] = not_less - static_cast<int64_t>(tied_end);
  }
  for (size_t q = 0; q < r; ++q) {
    if (s.position[q] >= 0) continue;
    standing.rank[out + q] = std::numeric_limits<double>::infinity();
    standing.last[out + q] = n_labels;
    standing.above[out + q] = n_listed - static_cast<int64_t>(found);
    standing.not_below[out + q] = n_labels - static_cast<int64_t>(r);
  }
}

template <typename T>
StandingArrays rank_rows(const Indptr& y_indptr, const Ids& y_labels, const Scores<T>& scores, int64_t n_labels,
                         int n_threads) {
  require(static_cast<int64_t>(y_indptr.shape(0)) == scores.n_rows + 1, "scores must have one row for each row of Y");
  require_indptr(y_indptr, static_cast<int64_t>(y_labels.shape(0)), "y_indptr");
  for (size_t p = 0; p < y_labels.shape(0); ++p)
    require(y_labels(p) >= 0 && y_labels(p) < n_labels, "y_labels must lie in [0, n_labels)");
  Standing standing(y_labels.shape(0));
  parallel_for(scores.n_rows, n_threads, kBlock, [&](int64_t begin, int64_t end, int) {
    Scratch scratch;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t start = y_indptr(i), r = y_indptr(i + 1) - start;
      if (r > 0) rank_row<T>(scores.row(i), n_labels, y_labels.data() + start, r, start, scratch, standing);
    }
  });
  return {to_array(std::move(standing.rank)), to_array(std::move(standing.last)), to_array(std::move(standing.above)),
          to_array(std::move(standing.not_below))};
}

template <typename T>
TopLabels top_k_rows(const Scores<T>& scores, int64_t k, int n_threads) {
  require(k >= 1, "k must be positive");
  std::vector<int32_t> labels(scores.n_rows * k, -1);
  std::vector<float> values(labels.size(), -std::numeric_limits<float>::infinity());
  parallel_for(scores.n_rows, n_threads, kBlock, [&](int64_t begin, int64_t end, int) {
    std::vector<int64_t> best;
    for (int64_t i = begin; i < end; ++i) {
      const ScoreRow<T> row = scores.row(i);
      top_k(row, k, best);
      for (size_t p = 0; p < best.size(); ++p) {
        labels[i * k + p] = row.label(best[p]);
        // A listed score never becomes -inf, the mark of a label that is not listed.
        values[i * k + p] = std::max(static_cast<float>(row.scores[best[p]]), std::numeric_limits<float>::lowest());
      }
    }
  });
  return {to_array(std::move(labels), scores.n_rows, k), to_array(std::move(values), scores.n_rows, k)};
}

}  // namespace

template <typename T>
StandingArrays standing_listed(Indptr y_indptr, Ids y_labels, Indptr indptr, Ids labels, In1<T> scores,
                               int64_t n_labels, int n_threads) {
  return rank_rows(y_indptr, y_labels, listed(indptr, labels, scores), n_labels, n_threads);
}

template <typename T>
TopLabels top_k_dense(In2<T> scores, int64_t k, int n_threads) {
  return top_k_rows(dense(scores), k, n_threads);
}

template <typename T>
TopLabels top_k_listed(Indptr indptr, Ids labels, In1<T> scores, int64_t k, int n_threads) {
  return top_k_rows(listed(indptr, labels, scores), k, n_threads);
}

Array1<double> descending_rows(Indptr indptr, In1<double> values) {
  const int64_t n = require_lists(indptr, values.shape(0));
  require_numbers(values.data(), values.size());
  std::vector<double> sorted(values.data(), values.data() + values.size());
  for (int64_t i = 0; i < n; ++i)
    std::sort(sorted.begin() + indptr(i), sorted.begin() + indptr(i + 1), std::greater<>());
  return to_array(std::move(sorted));
}

template StandingArrays standing_listed(Indptr, Ids, Indptr, Ids, In1<float>, int64_t, int);
template StandingArrays standing_listed(Indptr, Ids, Indptr, Ids, In1<double>, int64_t, int);
template TopLabels top_k_dense(In2<float>, int64_t, int);
template TopLabels top_k_dense(In2<double>, int64_t, int);
template TopLabels top_k_listed(Indptr, Ids, In1<float>, int64_t, int);
template TopLabels top_k_listed(Indptr, Ids, In1<double>, int64_t, int);

}  // namespace metarank
