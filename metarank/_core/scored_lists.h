// Lists of scored labels by row, labels ascending within each.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "arrays.h"
#include "parallel.h"

namespace metarank {

struct LabelLists {
  Array1<int64_t> indptr;
  Array1<int32_t> labels;
  Array1<float> scores;
};

// A label at hand; the better one first, of equal scores the smaller label.
struct Scored {
  double score;
  int32_t label;
  bool operator<(const Scored& other) const { return score != other.score ? score > other.score : label < other.label; }
};

// The k first of all, in no order.
template <typename T>
void keep_first(std::vector<T>& all, int64_t k) {
  if (static_cast<int64_t>(all.size()) <= k) return;
  std::nth_element(all.begin(), all.begin() + k, all.end());
  all.erase(all.begin() + k, all.end());
}

// The k best, labels ascending.
inline void keep_best(std::vector<Scored>& list, int64_t k) {
  keep_first(list, k);
  std::sort(list.begin(), list.end(), [](const Scored& a, const Scored& b) { return a.label < b.label; });
}

// The lists of some rows, one behind the other.
class ListsOfRows {
 public:
  void add(int32_t label, float score) {
    labels_.push_back(label);
    scores_.push_back(score);
  }
  void add(const std::vector<Scored>& list) {
    for (const Scored& s : list) add(s.label, static_cast<float>(s.score));
  }
  void end_row() { ends_.push_back(static_cast<int64_t>(labels_.size())); }

  // Those of n rows, made block by block: body(begin, end, lists) adds the lists of rows begin .. end.
  template <typename Body>
  static LabelLists of(int64_t n, int n_threads, int64_t block, const Body& body) {
    std::vector<ListsOfRows> parts((n + block - 1) / block);
    parallel_for(n, n_threads, block, [&](int64_t begin, int64_t end, int) { body(begin, end, parts[begin / block]); });
    std::vector<int64_t> indptr{0};
    std::vector<int32_t> labels;
    std::vector<float> scores;
    size_t total = 0;
    for (const ListsOfRows& part : parts) total += part.labels_.size();
    indptr.reserve(n + 1);
    labels.reserve(total);
    scores.reserve(total);
    for (ListsOfRows& part : parts) {  // each is given back as soon as it is copied
      const auto before = static_cast<int64_t>(labels.size());
      for (const int64_t end : part.ends_) indptr.push_back(before + end);
      labels.insert(labels.end(), part.labels_.begin(), part.labels_.end());
      scores.insert(scores.end(), part.scores_.begin(), part.scores_.end());
      part = {};
    }
    return {to_array(std::move(indptr)), to_array(std::move(labels)), to_array(std::move(scores))};
  }

 private:
  std::vector<int32_t> labels_;
  std::vector<float> scores_;
  std::vector<int64_t> ends_;
};

}  // namespace metarank
