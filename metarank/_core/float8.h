// Eight floats at a time, and the two functions of them that link margins to probabilities.
//
// Every operation is rounded by itself (no FMA), so the results do not depend on the instruction set.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "cpu_level.h"

namespace metarank {

typedef float Float8 __attribute__((vector_size(32)));
typedef int32_t Int8 __attribute__((vector_size(32)));

METARANK_INLINE Float8 load_float8(const float* p) {
  Float8 v;
  std::memcpy(&v, p, sizeof v);
  return v;
}
METARANK_INLINE void store_float8(float* p, Float8 v) { std::memcpy(p, &v, sizeof v); }
// By way of the bits: written as a list of eight, GCC 12 inserts them one by one.
METARANK_INLINE Float8 float8(float x) { return (Float8)(Int8{} | std::bit_cast<int32_t>(x)); }
// The second where either is NaN.
METARANK_INLINE Float8 smaller(Float8 a, Float8 b) { return a < b ? a : b; }
METARANK_INLINE Float8 larger(Float8 a, Float8 b) { return a > b ? a : b; }

// e^x to about one part in 10^7, x taken into [-80, 80]: 2^k times a polynomial on [-log(2)/2, log(2)/2].
METARANK_INLINE Float8 exp_float8(Float8 x) {
  x = larger(smaller(x, float8(80.0f)), float8(-80.0f));
  const Float8 shift = float8(12582912.0f);  // 1.5 * 2^23: adding it rounds to an integer
  const Float8 t = x * float8(1.44269504f) + shift;
  const Float8 k = t - shift;
  const Float8 r = (x - k * float8(0.693359375f)) - k * float8(-2.12194440e-4f);
  Float8 p = float8(1.9875691500e-4f);
  p = p * r + float8(1.3981999507e-3f);
  p = p * r + float8(8.3334519073e-3f);
  p = p * r + float8(4.1665795894e-2f);
  p = p * r + float8(1.6666665459e-1f);
  p = p * r + float8(5.0000001201e-1f);
  p = p * (r * r) + r + float8(1.0f);
  const Int8 bits = ((Int8)t - (Int8)shift + 127) << 23;
  return p * (Float8)bits;
}

// log(1 + u) for u in [0, 1], to about one part in 10^7: 2 atanh(u / (2 + u)).
METARANK_INLINE Float8 log1p_float8(Float8 u) {
  const Float8 t = u / (u + float8(2.0f));
  const Float8 s = t * t;
  Float8 p = float8(1.0f / 15.0f);
  p = p * s + float8(1.0f / 13.0f);
  p = p * s + float8(1.0f / 11.0f);
  p = p * s + float8(1.0f / 9.0f);
  p = p * s + float8(1.0f / 7.0f);
  p = p * s + float8(1.0f / 5.0f);
  p = p * s + float8(1.0f / 3.0f);
  return (t + t) * (p * s + float8(1.0f));
}

}  // namespace metarank
