// exp, log and what is made of them, in double: the same bits on every processor and beside every C library.
//
// libm and NumPy have several versions of each, chosen by the instruction set, which differ in the last bit. Here
// every operation is one of IEEE 754, rounded by itself (no FMA). Errors of exp, log, log1p and log2 stay below one unit
// in the last place, those of the functions made of them below three.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace metarank {

namespace elementary {

// log(2) in two parts; the first ends in 21 zeros, so that products with exponents are exact.
inline constexpr double kLog2High = 0x1.62e42feep-1, kLog2Low = 0x1.a39ef35793c76p-33;
inline constexpr double kLog2E = 0x1.71547652b82fep+0;

// A positive, finite number as (1 + f) 2^k, 1 + f in [sqrt(1/2), sqrt(2)).
struct Parts {
  double f, k;
};

inline Parts parts_of(double x) {
  int64_t k = 0;
  if (x < std::numeric_limits<double>::min()) {
    x *= 0x1p54;
    k = -54;
  }
  const auto bits = std::bit_cast<uint64_t>(x);
  constexpr uint64_t kRoot = 0x3fe6a09e667f3bcd;  // sqrt(1/2)
  const uint64_t above = bits - kRoot;            // its exponent is how often x exceeds it by 2, modulo 2^64
  const int64_t shift = static_cast<int64_t>(above) >> 52;
  const uint64_t mantissa = bits - (static_cast<uint64_t>(shift) << 52);
  return {std::bit_cast<double>(mantissa) - 1.0, static_cast<double>(k + shift)};
}

// What log(1 + f) exceeds f - f^2 / 2 by, 1 + f in [sqrt(1/2), sqrt(2)): with s = f / (2 + f), log(1 + f) is
// 2 atanh(s), and 2 s = f - s f.
inline double above_square(double f, double half_square) {
  const double s = f / (2.0 + f), z = s * s;
  double p = 2.0 / 21;
  p = p * z + 2.0 / 19;
  p = p * z + 2.0 / 17;
  p = p * z + 2.0 / 15;
  p = p * z + 2.0 / 13;
  p = p * z + 2.0 / 11;
  p = p * z + 2.0 / 9;
  p = p * z + 2.0 / 7;
  p = p * z + 2.0 / 5;
  p = p * z + 2.0 / 3;
  return s * (half_square + p * z);
}

// log((1 + f) 2^k) + more, small parts first.
inline double log_of(Parts x, double more) {
  const double half_square = 0.5 * x.f * x.f;
  return x.k * kLog2High + (x.f + ((above_square(x.f, half_square) + (x.k * kLog2Low + more)) - half_square));
}

// exp(high - low), |high| at most log(2) / 2 and low far below its last place.
inline double exp_of(double high, double low) {
  const double r = high - low;
  double p = 1.0 / 6227020800;  // 1 / 13!
  p = p * r + 1.0 / 479001600;
  p = p * r + 1.0 / 39916800;
  p = p * r + 1.0 / 3628800;
  p = p * r + 1.0 / 362880;
  p = p * r + 1.0 / 40320;
  p = p * r + 1.0 / 5040;
  p = p * r + 1.0 / 720;
  p = p * r + 1.0 / 120;
  p = p * r + 1.0 / 24;
  p = p * r + 1.0 / 6;
  p = p * r + 0.5;
  return 1.0 + (high + (p * (r * r) - low));
}

// That times 2^k.
inline double exp_of(double high, double low, double k) {
  const double y = exp_of(high, low);
  // Twice, as one power of two may be out of range; only a product below the normal numbers is rounded.
  const auto first = static_cast<int64_t>(k) / 2, second = static_cast<int64_t>(k) - first;
  return y * std::bit_cast<double>(static_cast<uint64_t>(first + 1023) << 52) *
         std::bit_cast<double>(static_cast<uint64_t>(second + 1023) << 52);
}

// Adding it to a number of moderate size rounds that to an integer.
inline constexpr double kShift = 0x1.8p52;

inline double exp(double x) {
  if (!(x <= 710.0)) return x * std::numeric_limits<double>::infinity();  // NaN stays
  if (x < -746.0) return 0.0;
  const double k = (x * kLog2E + kShift) - kShift;
  return exp_of(x - k * kLog2High, k * kLog2Low, k);
}

// exp(-x), x >= 0, to the bit that of `exp` where x is at most 700, beyond which it stays what it is there. Without a
// branch, so that loops of it are done several at a time.
inline double exp_down(double x) {
  const double y = -(x < 700.0 ? x : 700.0), t = y * kLog2E + kShift, k = t - kShift;
  const double power = std::bit_cast<double>((std::bit_cast<uint64_t>(t) + 1023) << 52);
  return exp_of(y - k * kLog2High, k * kLog2Low) * power;
}

// 2^x, exact for integers.
inline double exp2(double x) {
  if (!(x <= 1024.0)) return x * std::numeric_limits<double>::infinity();
  if (x < -1076.0) return 0.0;
  const double k = (x + kShift) - kShift;
  return exp_of((x - k) * (kLog2High + kLog2Low), 0.0, k);
}

inline double log(double x) {
  if (!(x > 0.0)) return x == 0.0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::quiet_NaN();
  return x == std::numeric_limits<double>::infinity() ? x : log_of(parts_of(x), 0.0);
}

inline double log2(double x) {
  if (!(x > 0.0) || x == std::numeric_limits<double>::infinity()) return log(x);
  // 1 / log(2) and log(1 + f) each in two parts, the first so short that their product is exact.
  constexpr double kHigh = 0x1.71547652p+0, kLow = 0x1.705fc2eefa2p-33;
  const auto [f, k] = parts_of(x);
  const double half_square = 0.5 * f * f;
  const double high = std::bit_cast<double>(std::bit_cast<uint64_t>(f - half_square) & ~0xffffffffULL);
  const double low = ((f - high) - half_square) + above_square(f, half_square);
  const double large = high * kHigh, sum = k + large;
  return (((k - sum) + large) + ((low + high) * kLow + low * kHigh)) + sum;
}

// log(1 + x).
inline double log1p(double x) {
  if (x > -0.29 && x < 0.41) return log_of({x, 0.0}, 0.0);
  const double u = 1.0 + x;
  if (!(u > 0.0) || u == std::numeric_limits<double>::infinity()) return log(u);
  const double lost = x >= 1.0 ? 1.0 - (u - x) : x - (u - 1.0);  // 1 + x = u + lost, exactly
  return log_of(parts_of(u), lost / u);
}

// 1 / (1 + exp(-z)).
inline double logistic(double z) {
  const double e = exp(-std::fabs(z));
  return (z < 0.0 ? e : 1.0) / (1.0 + e);
}

// log(1 + exp(z)).
inline double softplus(double z) { return (z > 0.0 ? z : 0.0) + log1p(exp(-std::fabs(z))); }

// log(p / (1 - p)), the inverse of `logistic`; infinite at 0 and 1.
inline double log_odds(double p) { return log(p / (1.0 - p)); }

}  // namespace elementary

}  // namespace metarank
