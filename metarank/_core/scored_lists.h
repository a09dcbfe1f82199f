// Lists of scored ids by row (or by label), ids ascending within each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace metarank {

struct ScoredLists {
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> ids;
  std::vector<float> scores;
  std::vector<float> per_tree;  // (entries, trees), or empty

  // Lists of at most k entries, stored k apart, moved together; list i has count[i].
  void close_gaps(const std::vector<std::int64_t>& count, std::int64_t k, std::int64_t n_columns) {
    indptr.assign(1, 0);
    for (std::size_t i = 0; i < count.size(); ++i) {
      const std::int64_t from = static_cast<std::int64_t>(i) * k, to = indptr.back(), n = count[i];
      if (from != to) {
        std::copy_n(ids.begin() + from, n, ids.begin() + to);
        std::copy_n(scores.begin() + from, n, scores.begin() + to);
        std::copy_n(per_tree.begin() + from * n_columns, n * n_columns, per_tree.begin() + to * n_columns);
      }
      indptr.push_back(to + n);
    }
    const auto total = static_cast<std::size_t>(indptr.back());
    ids.resize(total);
    scores.resize(total);
    per_tree.resize(total * static_cast<std::size_t>(n_columns));
  }
};

}  // namespace metarank
