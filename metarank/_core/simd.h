// Sums in one fixed order, wide enough for the compiler to vectorise.
//
// Sixteen partial sums are kept side by side and folded in a fixed tree, so the
// result depends on the two vectors only: not on the batch, the thread or the
// instruction set (products and additions are rounded one by one, without FMA).
#pragma once

#include <cmath>
#include <cstdint>

#include "cpu_level.h"

namespace metarank {

constexpr int kLanes = 16;

inline float fold_lanes(const float* s) {
  float t[8], u[4];
  for (int i = 0; i < 8; ++i) t[i] = s[i] + s[i + 8];
  for (int i = 0; i < 4; ++i) u[i] = t[i] + t[i + 4];
  return (u[0] + u[2]) + (u[1] + u[3]);
}

METARANK_INLINE float dot(const float* a, const float* b, int64_t d) {
  float s[kLanes] = {0};
  int64_t j = 0;
  for (; j + kLanes <= d; j += kLanes)
    for (int i = 0; i < kLanes; ++i) s[i] += a[j + i] * b[j + i];
  for (int i = 0; j < d; ++j, ++i) s[i] += a[j] * b[j];
  return fold_lanes(s);
}

METARANK_INLINE float squared_l2(const float* a, const float* b, int64_t d) {
  float s[kLanes] = {0};
  int64_t j = 0;
  for (; j + kLanes <= d; j += kLanes)
    for (int i = 0; i < kLanes; ++i) {
      const float t = a[j + i] - b[j + i];
      s[i] += t * t;
    }
  for (int i = 0; j < d; ++j, ++i) {
    const float t = a[j] - b[j];
    s[i] += t * t;
  }
  return fold_lanes(s);
}

METARANK_INLINE float l1(const float* a, const float* b, int64_t d) {
  float s[kLanes] = {0};
  int64_t j = 0;
  for (; j + kLanes <= d; j += kLanes)
    for (int i = 0; i < kLanes; ++i) s[i] += std::fabs(a[j + i] - b[j + i]);
  for (int i = 0; j < d; ++j, ++i) s[i] += std::fabs(a[j] - b[j]);
  return fold_lanes(s);
}

}  // namespace metarank
