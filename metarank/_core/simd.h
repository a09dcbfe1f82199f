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

// Of double, eight take as much room.
inline double fold_lanes(const double* s) {
  return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]));
}

// The sum of term(j), j < d, which is inlined.
template <typename T, typename Term>
METARANK_INLINE T sum_in_lanes(int64_t d, const Term& term) {
  constexpr int kWide = kLanes * sizeof(float) / sizeof(T);
  T s[kWide] = {0};
  int64_t j = 0;
  for (; j + kWide <= d; j += kWide)
    for (int i = 0; i < kWide; ++i) s[i] += term(j + i);
  for (int i = 0; j < d; ++j, ++i) s[i] += term(j);
  return fold_lanes(s);
}

template <typename T>
METARANK_INLINE T dot(const T* a, const T* b, int64_t d) {
  return sum_in_lanes<T>(d, [=](int64_t j) METARANK_LAMBDA_INLINE { return a[j] * b[j]; });
}

METARANK_INLINE float squared_l2(const float* a, const float* b, int64_t d) {
  return sum_in_lanes<float>(d, [=](int64_t j) METARANK_LAMBDA_INLINE { return (a[j] - b[j]) * (a[j] - b[j]); });
}

METARANK_INLINE float l1(const float* a, const float* b, int64_t d) {
  return sum_in_lanes<float>(d, [=](int64_t j) METARANK_LAMBDA_INLINE { return std::fabs(a[j] - b[j]); });
}

// out += factor * row.
template <typename T, typename Value>
METARANK_INLINE void add_scaled(T* out, T factor, const Value* row, int64_t d) {
  for (int64_t j = 0; j < d; ++j) out[j] += factor * row[j];
}

}  // namespace metarank
