// Scored lists: safe to follow once checked, the order of their entries, and work spread over them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <numeric>
#include <vector>

#include "arrays.h"
#include "parallel.h"

namespace metarank {

// The number of lists, once indptr is known to be safe to follow.
inline int64_t require_lists(const In1<int64_t>& indptr, size_t n_pairs) {
  require_indptr(indptr, static_cast<int64_t>(n_pairs), "indptr");
  return static_cast<int64_t>(indptr.shape(0)) - 1;
}

// Sorting needs an order, which NaN has not.
template <typename T>
void require_finite(const In1<T>& values, const char* name) {
  for (size_t i = 0; i < values.shape(0); ++i)
    if (!std::isfinite(values(i))) throw std::invalid_argument(std::string(name) + " must be finite");
}

inline void require_permutation(const In1<int64_t>& order, size_t n) {
  require(order.shape(0) == n, "order must have one entry a score");
  std::vector<char> seen(n, 0);
  for (size_t i = 0; i < n; ++i) {
    require(order(i) >= 0 && order(i) < static_cast<int64_t>(n) && !seen[order(i)], "order must be a permutation");
    seen[order(i)] = 1;
  }
}

// 0 .. n-1 by descending score, ties by number.
template <typename T>
void sort_descending(const T* score, int64_t n, std::vector<int64_t>& order) {
  order.resize(n);
  std::iota(order.begin(), order.end(), int64_t{0});
  std::sort(order.begin(), order.end(),
            [score](int64_t a, int64_t b) { return score[a] != score[b] ? score[a] > score[b] : a < b; });
}

// The sum, in the order of the lists, of body(scratch, list, first, size); each thread has its scratch.
template <typename Scratch, typename Body>
double sum_over_lists(const In1<int64_t>& indptr, int n_threads, const Body& body) {
  const auto n = static_cast<int64_t>(indptr.shape(0)) - 1;
  std::vector<double> values(n, 0.0);
  parallel_for(n, n_threads, 64, [&](int64_t begin, int64_t end, int) {
    Scratch scratch;
    for (int64_t i = begin; i < end; ++i) values[i] = body(scratch, i, indptr(i), indptr(i + 1) - indptr(i));
  });
  return std::accumulate(values.begin(), values.end(), 0.0);
}

}  // namespace metarank
