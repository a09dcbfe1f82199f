// Dense rows in 8 bits a number, which tell from a quarter of the memory what rows may have the greatest products with
// a query; the exact products are then those of a few.
//
// A row is y = scale c + e for whole numbers c in [-127, 127], a query x likewise: the product of their whole numbers
// misses x . y by |x| |e_y| + |e_x| (|y| + |e_y|) at most. Bounds allow for sums rounded to single precision, too.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <utility>
#include <vector>

#include "arrays.h"
#include "cpu_level.h"

namespace metarank {

class CoarseRows {
 public:
  // Of X the rows `numbers`; `bias` has an entry for each.
  CoarseRows(In2<float> X, std::vector<int32_t> numbers, std::vector<float> bias)
      : width_(static_cast<int64_t>(X.shape(1))),
        unit_(4.0f * static_cast<float>(width_ + 32) * std::numeric_limits<float>::epsilon()),
        numbers_(std::move(numbers)), bias_(std::move(bias)), values_(numbers_.size() * X.shape(1)) {
    require(bias_.size() == numbers_.size(), "bias must have one entry a row");
    for (size_t i = 0; i < numbers_.size(); ++i) {
      require(numbers_[i] >= 0 && static_cast<size_t>(numbers_[i]) < X.shape(0), "row numbers must lie in [0, n)");
      rows_.push_back(coarsened(X.data() + numbers_[i] * width_, kMost, values_.data() + i * width_));
    }
  }

  // The numbers of all rows y that may be among the k of the greatest x . y + bias, or of the least |x - y|^2 where
  // bias is -|y|^2 / 2, in single precision.
  std::vector<int32_t> foremost(const In2<float>& x, int64_t k) const {
    require(x.size() == static_cast<size_t>(width_), "a query must have as many features as the rows");
    const size_t n = numbers_.size();
    if (static_cast<size_t>(k) >= n) return numbers_;
    std::vector<int16_t> query(width_);
    const int64_t most = std::numeric_limits<int32_t>::max() / (kMost * std::max<int64_t>(width_, 1));  // no overflow
    const Coarse of_x = coarsened(x.data(), std::min<int64_t>(most, 32'767), query.data());
    std::vector<float> least(n), slack(n);
    by_level<bound>(*this, query.data(), of_x, least.data(), slack.data());
    // The k-th of the greatest of some groups is not above the k-th of all, and hardly below.
    const auto groups = std::min(n, kGroups * static_cast<size_t>(k));
    std::vector<float> greatest(least.begin(), least.begin() + groups);
    for (size_t first = groups; first < n; first += groups)
      for (size_t i = 0; i < std::min(groups, n - first); ++i) greatest[i] = std::max(greatest[i], least[first + i]);
    std::nth_element(greatest.begin(), greatest.begin() + (k - 1), greatest.end(), std::greater<>());
    std::vector<int32_t> out;
    for (size_t i = 0; i < n; ++i)
      if (least[i] + 2.0f * slack[i] >= greatest[k - 1]) out.push_back(numbers_[i]);
    return out;
  }

 private:
  static constexpr int64_t kMost = 127;
  static constexpr size_t kGroups = 16;
  static constexpr float kLargest = 1e37f;

  struct Coarse {
    float scale, length, error;  // |y| and |e|
  };

  // Whole numbers of at most `most` for those of a row.
  template <typename T>
  Coarse coarsened(const float* y, int64_t most, T* out) const {
    float largest = 0.0f;
    for (int64_t j = 0; j < width_; ++j) largest = std::max(largest, std::fabs(y[j]));
    const float scale = largest / static_cast<float>(most);
    double squares = 0.0, errors = 0.0;
    for (int64_t j = 0; j < width_; ++j) {
      const double value = y[j], level = scale > 0.0f ? std::nearbyint(value / scale) : 0.0;
      out[j] = static_cast<T>(std::fabs(level) <= static_cast<double>(most) ? level : 0.0);
      const double error = value - static_cast<double>(scale) * out[j];
      squares += value * value;
      errors += error * error;
    }
    return {scale, static_cast<float>(std::sqrt(squares)), static_cast<float>(std::sqrt(errors))};
  }

  // Of each row the least that its product plus bias may be, and half of how much more.
  static METARANK_KERNEL void bound(const CoarseRows& own, const int16_t* x, const Coarse& of_x, float* least,
                                    float* slack) {
    const int64_t d = own.width_;
    const float unit = own.unit_, others = unit * of_x.length * of_x.length + std::numeric_limits<float>::min();
    for (size_t i = 0; i < own.rows_.size(); ++i) {
      const int8_t* const values = own.values_.data() + i * d;
      int32_t sum = 0;
      for (int64_t j = 0; j < d; ++j) sum += static_cast<int32_t>(x[j]) * static_cast<int16_t>(values[j]);
      const Coarse& y = own.rows_[i];
      const float off = (of_x.length + of_x.error) * y.error + (unit * of_x.length + of_x.error) * y.length +
                        unit * std::fabs(own.bias_[i]) + others;
      const bool is_known = off <= unit * kLargest;  // no sum overflows, and none is NaN
      least[i] = is_known ? static_cast<float>(sum) * y.scale * of_x.scale + own.bias_[i] - off
                          : std::numeric_limits<float>::lowest();
      slack[i] = is_known ? off : std::numeric_limits<float>::infinity();
    }
  }

  int64_t width_;
  float unit_;  // no sum of products, nor of squares of differences, is off by so much of its terms' magnitudes
  std::vector<int32_t> numbers_;
  std::vector<float> bias_;
  std::vector<Coarse> rows_;
  std::vector<int8_t> values_;
};

}  // namespace metarank
