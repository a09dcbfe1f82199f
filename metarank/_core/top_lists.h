// For each of many lists, the k ids of smallest cost seen; equal costs: smaller ids first.
//
// The result does not depend on the order of the pushes. A list holds a few more than 2k entries and
// is cut back to the best k when full, so a push costs O(1) on average.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

namespace metarank {

// Costs are >= 0, so their bits are in the order of their values.
struct CostKey {
  uint64_t bits;

  CostKey() = default;
  CostKey(float cost, int32_t id)
      : bits(static_cast<uint64_t>(std::bit_cast<uint32_t>(cost)) << 32 | static_cast<uint32_t>(id)) {}
  float cost() const { return std::bit_cast<float>(static_cast<uint32_t>(bits >> 32)); }
  int32_t id() const { return static_cast<int32_t>(bits & 0xffffffffu); }
  bool operator<(const CostKey& other) const { return bits < other.bits; }
};

class TopLists {
 public:
  static int64_t capacity(int64_t k) { return 2 * k + 2 * kRoom; }

  void reset(int64_t n_lists, int64_t k) {
    k_ = k;
    capacity_ = capacity(k);
    if (keys_.size() < static_cast<size_t>(n_lists * capacity_)) keys_.resize(static_cast<size_t>(n_lists * capacity_));
    count_.assign(static_cast<size_t>(n_lists), 0);
    limit_.assign(static_cast<size_t>(n_lists), std::numeric_limits<float>::infinity());
  }

  // No greater cost can enter the list any more.
  float limit(int64_t list) const { return limit_[list]; }

  void push(int64_t list, float cost, int32_t id) {
    if (cost > limit(list)) return;
    int64_t& n = count_[list];
    keys_[list * capacity_ + n] = CostKey(cost, id);
    if (++n == capacity_) cut(list);
  }

  // Pushes id(i) of cost(i), i < n. No branch depends on a cost, which cannot be foreseen.
  template <typename Cost, typename Id>
  void push_all(int64_t list, int64_t n, const Cost& cost, const Id& id) {
    CostKey* const keys = keys_.data() + list * capacity_;
    int64_t& size = count_[list];
    for (int64_t begin = 0; begin < n; begin += kRoom) {
      if (size + kRoom > capacity_) cut(list);
      const float most = limit(list);
      CostKey* next = keys + size;
      for (int64_t i = begin, end = std::min(n, begin + kRoom); i < end; ++i) {
        const float c = cost(i);
        *next = CostKey(c, id(i));
        next += c <= most;
      }
      size = next - keys;
    }
  }

  // The (at most k) best, in no order.
  const CostKey* best(int64_t list, int64_t* n) {
    if (count_[list] > k_) cut(list);
    *n = count_[list];
    return keys_.data() + list * capacity_;
  }

 private:
  static constexpr int64_t kRoom = 16;  // pushed without looking whether the list is full

  void cut(int64_t list) {
    CostKey* first = keys_.data() + list * capacity_;
    int64_t& n = count_[list];
    std::nth_element(first, first + (k_ - 1), first + n);
    limit_[list] = first[k_ - 1].cost();
    n = k_;
  }

  int64_t k_ = 1, capacity_ = 0;
  std::vector<CostKey> keys_;
  std::vector<int64_t> count_;
  std::vector<float> limit_;
};

}  // namespace metarank
