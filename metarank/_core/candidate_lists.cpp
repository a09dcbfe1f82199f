#include "candidate_lists.h"

#include <algorithm>
#include <iterator>
#include <limits>
#include <numeric>

#include "arrays.h"
#include "parallel.h"

namespace metarank {

std::tuple<Array1<std::int64_t>, Array1<std::int32_t>> unite_lists(
    const std::vector<In1<std::int64_t>>& indptr, const std::vector<In1<std::int32_t>>& labels) {
  require(!indptr.empty() && indptr.size() == labels.size(), "there must be at least one part, each with its labels");
  std::size_t most = 0;
  for (std::size_t k = 0; k < indptr.size(); ++k) {
    require_indptr(indptr[k], static_cast<std::int64_t>(labels[k].shape(0)), "indptr");
    require(indptr[k].shape(0) == indptr[0].shape(0), "parts must have the same rows");
    most += labels[k].shape(0);
  }
  const std::size_t n = indptr[0].shape(0) - 1;
  std::vector<std::int64_t> start(n + 1, 0);
  std::vector<std::int32_t> united;
  united.reserve(most);
  std::vector<std::int32_t> row, merged;
  for (std::size_t i = 0; i < n; ++i) {
    row.clear();
    for (std::size_t k = 0; k < indptr.size(); ++k) {
      const std::int32_t* list = labels[k].data();
      merged.clear();
      std::set_union(row.begin(), row.end(), list + indptr[k].data()[i], list + indptr[k].data()[i + 1],
                     std::back_inserter(merged));
      row.swap(merged);
    }
    united.insert(united.end(), row.begin(), row.end());
    start[i + 1] = static_cast<std::int64_t>(united.size());
  }
  return std::make_tuple(to_array(std::move(start)), to_array(std::move(united)));
}

Array2<float> proposal_columns(const std::vector<In1<std::int64_t>>& part_indptr,
                               const std::vector<In1<std::int32_t>>& part_labels,
                               const std::vector<In1<float>>& part_scores, In1<std::int64_t> indptr,
                               In1<std::int32_t> labels, In1<float> own, float absent, int n_threads) {
  const std::size_t S = part_indptr.size(), width = 2 * S + 1;
  require(own.shape(0) == labels.shape(0), "each pair must have a value of its own");
  require(S > 0 && part_labels.size() == S && part_scores.size() == S, "each part must have labels and scores");
  require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "indptr");
  for (std::size_t s = 0; s < S; ++s) {
    require_indptr(part_indptr[s], static_cast<std::int64_t>(part_labels[s].shape(0)), "part_indptr");
    require(part_indptr[s].shape(0) == indptr.shape(0), "parts must have the same rows");
    require(part_scores[s].shape(0) == part_labels[s].shape(0), "each label of a part must have a score");
  }
  std::vector<float> out(labels.shape(0) * width);
  for (std::size_t pair = 0; pair < labels.shape(0); ++pair) out[pair * width + 2 * S] = own(pair);
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  parallel_for(n, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<std::int64_t> order, place;
    for (std::int64_t i = begin; i < end; ++i)
      for (std::size_t s = 0; s < S; ++s) {
        const std::int64_t first = part_indptr[s](i), count = part_indptr[s](i + 1) - first;
        const std::int32_t* const list = part_labels[s].data() + first;
        const float* const score = part_scores[s].data() + first;
        order.resize(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        std::sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
          return score[a] > score[b] || (score[a] == score[b] && a < b);
        });
        place.resize(order.size());
        for (std::size_t j = 0; j < order.size(); ++j)
          place[static_cast<std::size_t>(order[j])] = static_cast<std::int64_t>(j);
        const float least = order.empty() ? 0.0f : score[order.back()];
        std::int64_t j = 0;
        for (std::int64_t pair = indptr(i); pair < indptr(i + 1); ++pair) {
          float* const at = out.data() + static_cast<std::size_t>(pair) * width + 2 * s;
          while (j < count && list[j] < labels(pair)) ++j;
          const bool proposed = j < count && list[j] == labels(pair);
          at[0] = proposed ? score[j] : least;
          at[1] = proposed ? static_cast<float>(place[static_cast<std::size_t>(j)]) : absent;
        }
      }
  });
  return to_array(std::move(out), labels.shape(0), width);
}

Array1<std::uint8_t> foremost(In1<double> scores, In1<std::int64_t> indptr, std::int64_t k) {
  require_indptr(indptr, static_cast<std::int64_t>(scores.shape(0)), "indptr");
  require(k > 0, "k must be positive");
  std::vector<std::uint8_t> out(scores.shape(0), 0);
  std::vector<std::int64_t> order;
  for (std::size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    order.resize(static_cast<std::size_t>(indptr(i + 1) - indptr(i)));
    std::iota(order.begin(), order.end(), indptr(i));
    const auto kept = std::min(order.size(), static_cast<std::size_t>(k));
    if (kept < order.size())
      std::nth_element(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(kept), order.end(),
                       [&](std::int64_t a, std::int64_t b) {
                         return scores(a) > scores(b) || (scores(a) == scores(b) && a < b);
                       });
    for (std::size_t j = 0; j < kept; ++j) out[static_cast<std::size_t>(order[j])] = 1;
  }
  return to_array(std::move(out));
}

Array1<double> with_pairs_behind(In1<double> evidence, In1<double> rough, In1<std::uint8_t> ahead,
                                 In1<std::int64_t> indptr, double gap) {
  require(rough.shape(0) == ahead.shape(0), "each pair must have a rough score");
  require_indptr(indptr, static_cast<std::int64_t>(rough.shape(0)), "indptr");
  const auto n_ahead = static_cast<std::size_t>(std::count(ahead.data(), ahead.data() + ahead.shape(0), 1));
  require(evidence.shape(0) == n_ahead, "each pair ahead must have its evidence");
  std::vector<double> out(rough.shape(0));
  std::size_t next = 0;
  for (std::size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    double least = std::numeric_limits<double>::infinity(), best = -least;
    for (std::int64_t pair = indptr(i); pair < indptr(i + 1); ++pair)
      if (ahead(pair)) {
        least = std::min(least, out[static_cast<std::size_t>(pair)] = evidence(next++));
      } else {
        best = std::max(best, rough(pair));
      }
    const double move = least == std::numeric_limits<double>::infinity() ? 0.0 : least - gap - best;
    for (std::int64_t pair = indptr(i); pair < indptr(i + 1); ++pair)
      if (!ahead(pair)) out[static_cast<std::size_t>(pair)] = rough(pair) + move;
  }
  return to_array(std::move(out));
}

}  // namespace metarank
