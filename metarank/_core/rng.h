// Counter-based randomness: a value depends on (seed, index) only.
#pragma once

#include <cstdint>

namespace metarank {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
inline std::uint64_t splitmix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline std::uint64_t hash_pair(std::uint64_t seed, std::uint64_t index) {
  return splitmix64(splitmix64(seed) ^ index);
}

}  // namespace metarank
