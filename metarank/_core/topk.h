// The order of a row's entries, and the k that come first.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <tuple>
#include <vector>

#include "arrays.h"

namespace metarank {

// (labels, scores), both (rows, k).
using TopLabels = std::tuple<Array2<int32_t>, Array2<float>>;

// One row of scores: all labels (`labels` null, an entry's position is its label) or some of them.
// A score of -inf means "not listed".
template <typename T>
struct ScoreRow {
  const int32_t* labels;
  const T* scores;
  int64_t n;

  int32_t label(int64_t j) const { return labels ? labels[j] : static_cast<int32_t>(j); }
  bool listed(int64_t j) const { return scores[j] != -std::numeric_limits<T>::infinity(); }
  // Descending score; ties keep the order of the row, which is ascending labels for sparse and dense scores.
  bool before(int64_t a, int64_t b) const { return scores[a] > scores[b] || (scores[a] == scores[b] && a < b); }
};

// Entry j joins the heap of the (at most) k first listed entries, the last of them at its front, if it is one.
template <typename T>
void offer(const ScoreRow<T>& row, int64_t j, int64_t k, std::vector<int64_t>& heap) {
  const auto before = [&row](int64_t a, int64_t b) { return row.before(a, b); };
  if (!row.listed(j)) return;
  if (static_cast<int64_t>(heap.size()) < k) {
    heap.push_back(j);
    std::push_heap(heap.begin(), heap.end(), before);
  } else if (before(j, heap.front())) {
    std::pop_heap(heap.begin(), heap.end(), before);
    heap.back() = j;
    std::push_heap(heap.begin(), heap.end(), before);
  }
}

// Positions of the (at most) k first listed entries, best first. `heap` is the result; its memory is reused.
template <typename T>
void top_k(const ScoreRow<T>& row, int64_t k, std::vector<int64_t>& heap) {
  heap.clear();
  for (int64_t j = 0; j < row.n; ++j) offer(row, j, k, heap);
  std::sort_heap(heap.begin(), heap.end(), [&row](int64_t a, int64_t b) { return row.before(a, b); });
}

}  // namespace metarank
