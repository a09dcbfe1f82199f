#include "topk.h"

#include "arrays.h"
#include "parallel.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlock = 256;

template <typename T, typename RowOf>
TopLabels top_k_rows(std::int64_t n, std::int64_t k, int n_threads, const RowOf& row_of) {
  require(k >= 1, "k must be positive");
  const std::size_t size = static_cast<std::size_t>(n) * static_cast<std::size_t>(k);
  std::vector<std::int32_t> labels(size, -1);
  std::vector<float> scores(size, -std::numeric_limits<float>::infinity());
  parallel_for(n, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<std::int64_t> best;
    for (std::int64_t i = begin; i < end; ++i) {
      const ScoreRow<T> row = row_of(i);
      top_k(row, k, best);
      for (std::size_t p = 0; p < best.size(); ++p) {
        const std::size_t at = static_cast<std::size_t>(i * k) + p;
        labels[at] = row.label(best[p]);
        // A listed score never becomes -inf, the mark of a label that is not listed.
        scores[at] = std::max(static_cast<float>(row.scores[best[p]]), std::numeric_limits<float>::lowest());
      }
    }
  });
  const auto rows = static_cast<std::size_t>(n), cols = static_cast<std::size_t>(k);
  return std::make_tuple(to_array(std::move(labels), rows, cols), to_array(std::move(scores), rows, cols));
}

}  // namespace

template <typename T>
TopLabels top_k_dense(In2<T> scores, std::int64_t k, int n_threads) {
  const auto width = static_cast<std::int64_t>(scores.shape(1));
  require(!any_nan(scores.data(), static_cast<std::int64_t>(scores.size())), "scores must not be NaN");
  require(width <= std::numeric_limits<std::int32_t>::max(), "scores must have fewer than 2^31 columns");
  return top_k_rows<T>(static_cast<std::int64_t>(scores.shape(0)), k, n_threads, [&](std::int64_t i) {
    return ScoreRow<T>{nullptr, scores.data() + i * width, width};
  });
}

template <typename T>
TopLabels top_k_listed(In1<std::int64_t> indptr, In1<std::int32_t> labels, In1<T> scores, std::int64_t k,
                       int n_threads) {
  require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "indptr");
  require(scores.shape(0) == labels.shape(0), "scores and labels must have the same length");
  require(!any_nan(scores.data(), static_cast<std::int64_t>(scores.size())), "scores must not be NaN");
  const std::int64_t* start = indptr.data();
  return top_k_rows<T>(static_cast<std::int64_t>(indptr.shape(0)) - 1, k, n_threads, [&](std::int64_t i) {
    return ScoreRow<T>{labels.data() + start[i], scores.data() + start[i], start[i + 1] - start[i]};
  });
}

template TopLabels top_k_dense(In2<float>, std::int64_t, int);
template TopLabels top_k_dense(In2<double>, std::int64_t, int);
template TopLabels top_k_listed(In1<std::int64_t>, In1<std::int32_t>, In1<float>, std::int64_t, int);
template TopLabels top_k_listed(In1<std::int64_t>, In1<std::int32_t>, In1<double>, std::int64_t, int);

}  // namespace metarank
