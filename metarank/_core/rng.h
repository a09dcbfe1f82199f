// Counter-based randomness: a value depends on (seed, index) only.
#pragma once

#include <cstdint>

namespace metarank {

// The finaliser of SplitMix64 (Steele, Lea, Flood 2014).
inline uint64_t splitmix64(uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

inline uint64_t hash_pair(uint64_t seed, uint64_t index) { return splitmix64(splitmix64(seed) ^ index); }

}  // namespace metarank
