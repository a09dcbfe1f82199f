#include "metrics.h"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "arrays.h"
#include "parallel.h"
#include "topk.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlock = 256;

struct Standing {
  std::vector<double> rank;
  std::vector<std::int64_t> last, above, not_below;

  explicit Standing(std::size_t n) : rank(n), last(n), above(n), not_below(n) {}
};

struct Scratch {
  std::vector<std::int64_t> position;  // of each relevant label in the row, -1 if not listed
  std::vector<std::size_t> order;      // the listed relevant labels, best first
  std::vector<std::int64_t> first_at, greater_at, not_less_at;
};

template <typename T>
void find_relevant(const ScoreRow<T>& row, const std::int32_t* relevant, std::size_t r,
                   std::vector<std::int64_t>& position) {
  position.assign(r, -1);
  if (row.labels == nullptr) {
    for (std::size_t q = 0; q < r; ++q)
      if (row.listed(relevant[q])) position[q] = relevant[q];
    return;
  }
  for (std::int64_t j = 0; j < row.n; ++j) {
    const auto* found = std::lower_bound(relevant, relevant + r, row.labels[j]);
    if (found != relevant + r && *found == row.labels[j] && row.listed(j)) position[found - relevant] = j;
  }
}

template <typename T>
void rank_row(const ScoreRow<T>& row, std::int64_t n_labels, const std::int32_t* relevant, std::size_t r,
              std::size_t out, Scratch& s, Standing& standing) {
  find_relevant(row, relevant, r, s.position);
  s.order.clear();
  for (std::size_t q = 0; q < r; ++q)
    if (s.position[q] >= 0) s.order.push_back(q);
  std::sort(s.order.begin(), s.order.end(),
            [&](std::size_t a, std::size_t b) { return row.before(s.position[a], s.position[b]); });

  // Bucket b counts the entries that precede the b-th relevant label but not the one before it.
  const std::size_t found = s.order.size();
  s.first_at.assign(found, 0);
  s.greater_at.assign(found, 0);
  s.not_less_at.assign(found, 0);
  const auto position = [&](std::size_t b) { return s.position[s.order[b]]; };
  const auto score = [&](std::size_t b) { return row.scores[position(b)]; };
  std::int64_t n_listed = 0;
  for (std::int64_t j = 0; j < row.n; ++j) {
    n_listed += row.listed(j);
    const T x = row.scores[j];
    if (found == 0 || x < score(found - 1)) continue;  // most labels stand below the last relevant one
    std::size_t lo = 0, hi = found - 1;
    while (lo < hi) {  // the first relevant label with a score <= x
      const std::size_t mid = (lo + hi) / 2;
      if (score(mid) <= x)
        hi = mid;
      else
        lo = mid + 1;
    }
    ++s.not_less_at[lo];
    std::size_t b = lo;
    while (b < found && score(b) == x && position(b) < j) ++b;
    if (b < found) ++s.first_at[b];
    while (b < found && score(b) == x) ++b;
    if (b < found) ++s.greater_at[b];
  }

  std::int64_t first = 0, greater = 0, not_less = 0;
  for (std::size_t b = 0, tied = 0; b < found; ++b) {
    if (score(b) != score(tied)) tied = b;
    std::size_t tied_end = b + 1;
    while (tied_end < found && score(tied_end) == score(b)) ++tied_end;
    first += s.first_at[b];
    greater += s.greater_at[b];
    not_less += s.not_less_at[b];
    const std::size_t at = out + s.order[b];
    standing.rank[at] = static_cast<double>(first);
    standing.last[at] = not_less;
    standing.above[at] = greater - static_cast<std::int64_t>(tied);
    standing.not_below[at] = not_less - static_cast<std::int64_t>(tied_end);
  }
  for (std::size_t q = 0; q < r; ++q) {
    if (s.position[q] >= 0) continue;
    standing.rank[out + q] = std::numeric_limits<double>::infinity();
    standing.last[out + q] = n_labels;
    standing.above[out + q] = n_listed - static_cast<std::int64_t>(found);
    standing.not_below[out + q] = n_labels - static_cast<std::int64_t>(r);
  }
}

template <typename T, typename RowOf>
StandingArrays rank_rows(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, std::int64_t n,
                         std::int64_t n_labels, int n_threads, const RowOf& row_of) {
  require(static_cast<std::int64_t>(y_indptr.shape(0)) == n + 1, "scores must have one row for each row of Y");
  const auto m = static_cast<std::int64_t>(y_labels.shape(0));
  require_indptr(y_indptr, m, "y_indptr");
  const std::int32_t* y = y_labels.data();
  for (std::int64_t p = 0; p < m; ++p)
    require(y[p] >= 0 && y[p] < n_labels, "y_labels must lie in [0, n_labels)");

  Standing standing(static_cast<std::size_t>(m));
  parallel_for(n, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    Scratch scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t start = y_indptr.data()[i];
      const auto r = static_cast<std::size_t>(y_indptr.data()[i + 1] - start);
      if (r > 0) rank_row<T>(row_of(i), n_labels, y + start, r, static_cast<std::size_t>(start), scratch, standing);
    }
  });
  return std::make_tuple(to_array(std::move(standing.rank)), to_array(std::move(standing.last)),
                        to_array(std::move(standing.above)), to_array(std::move(standing.not_below)));
}

}  // namespace

template <typename T>
StandingArrays standing_dense(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In2<T> scores, int n_threads) {
  const auto width = static_cast<std::int64_t>(scores.shape(1));
  require(!any_nan(scores.data(), static_cast<std::int64_t>(scores.size())), "scores must not be NaN");
  return rank_rows<T>(y_indptr, y_labels, static_cast<std::int64_t>(scores.shape(0)), width, n_threads,
                      [&](std::int64_t i) { return ScoreRow<T>{nullptr, scores.data() + i * width, width}; });
}

template <typename T>
StandingArrays standing_listed(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<std::int64_t> indptr,
                               In1<std::int32_t> labels, In1<T> scores, std::int64_t n_labels, int n_threads) {
  require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "indptr");
  require(scores.shape(0) == labels.shape(0), "scores and labels must have the same length");
  require(!any_nan(scores.data(), static_cast<std::int64_t>(scores.size())), "scores must not be NaN");
  const std::int64_t* start = indptr.data();
  return rank_rows<T>(y_indptr, y_labels, static_cast<std::int64_t>(indptr.shape(0)) - 1, n_labels, n_threads,
                      [&](std::int64_t i) {
                        return ScoreRow<T>{labels.data() + start[i], scores.data() + start[i], start[i + 1] - start[i]};
                      });
}

Array1<double> descending_rows(In1<std::int64_t> indptr, In1<double> values) {
  const auto m = static_cast<std::int64_t>(values.shape(0));
  require_indptr(indptr, m, "indptr");
  require(!any_nan(values.data(), m), "values must not be NaN");
  std::vector<double> sorted(values.data(), values.data() + m);
  const std::int64_t* start = indptr.data();
  for (std::size_t i = 0; i + 1 < indptr.shape(0); ++i)
    std::sort(sorted.begin() + start[i], sorted.begin() + start[i + 1], std::greater<>());
  return to_array(std::move(sorted));
}

template StandingArrays standing_dense(In1<std::int64_t>, In1<std::int32_t>, In2<float>, int);
template StandingArrays standing_dense(In1<std::int64_t>, In1<std::int32_t>, In2<double>, int);
template StandingArrays standing_listed(In1<std::int64_t>, In1<std::int32_t>, In1<std::int64_t>, In1<std::int32_t>,
                                        In1<float>, std::int64_t, int);
template StandingArrays standing_listed(In1<std::int64_t>, In1<std::int32_t>, In1<std::int64_t>, In1<std::int32_t>,
                                        In1<double>, std::int64_t, int);

}  // namespace metarank
