// Sums of values by label, of which the greatest are kept: what several trees say of a point, put together.
#pragma once

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

namespace metarank {

class LabelSums {
 public:
  explicit LabelSums(int64_t n_labels) : place_(static_cast<size_t>(n_labels), -1) {}

  void add(int32_t label, float value) {
    int32_t& place = place_[label];
    if (place < 0) {
      place = static_cast<int32_t>(labels_.size());
      labels_.push_back(label);
      sums_.push_back(0.0f);
    }
    sums_[place] += value;
  }

  // Values of n distinct labels.
  void add(const int32_t* labels, const float* values, int64_t n) {
    const size_t before = labels_.size();
    labels_.resize(before + static_cast<size_t>(n));
    sums_.resize(before + static_cast<size_t>(n));
    int32_t *const place = place_.data(), *const known = labels_.data();
    float* const sums = sums_.data();
    auto size = static_cast<int32_t>(before);
    for (int64_t i = 0; i < n; ++i) {
      int32_t& at = place[labels[i]];
      if (at < 0) {
        known[size] = labels[i];
        sums[size] = 0.0f;
        at = size++;
      }
      sums[at] += values[i];
    }
    labels_.resize(static_cast<size_t>(size));
    sums_.resize(static_cast<size_t>(size));
  }

  void divide(float by) {
    for (float& sum : sums_) sum /= by;
  }

  // 0 for a label that was not added.
  float of(int32_t label) const {
    const int32_t place = place_[label];
    return place < 0 ? 0.0f : sums_[place];
  }

  // In the order in which they were first added.
  const std::vector<int32_t>& labels() const { return labels_; }

  // The k labels of greatest sum (all are >= 0), ascending; ties: smaller labels.
  const std::vector<int32_t>& best(int64_t k) {
    const size_t n = std::min(labels_.size(), static_cast<size_t>(k));
    best_.assign(labels_.begin(), labels_.end());
    if (n < best_.size()) {
      keys_.resize(labels_.size());
      for (size_t i = 0; i < labels_.size(); ++i)  // the bits of what is >= 0 are in its order
        keys_[i] = static_cast<uint64_t>(~std::bit_cast<uint32_t>(sums_[i])) << 32 | static_cast<uint32_t>(labels_[i]);
      std::nth_element(keys_.begin(), keys_.begin() + static_cast<std::ptrdiff_t>(n), keys_.end());
      best_.resize(n);
      for (size_t i = 0; i < n; ++i) best_[i] = static_cast<int32_t>(keys_[i] & 0xffffffffu);
    }
    std::sort(best_.begin(), best_.end());
    return best_;
  }

  void clear() {
    for (const int32_t label : labels_) place_[label] = -1;
    labels_.clear();
    sums_.clear();
  }

 private:
  std::vector<int32_t> place_;  // of a label among those added, or -1
  std::vector<int32_t> labels_, best_;
  std::vector<float> sums_;
  std::vector<uint64_t> keys_;
};

}  // namespace metarank
