#include "cpu_level.h"

#include <cstdint>
#include <stdexcept>

#if METARANK_LEVELS > 1
#include <cpuid.h>
#endif

namespace metarank {

int detail::cpu_level = 0;

namespace {

const char* const kNames[] = {"baseline", "avx2", "avx512"};

// By CPUID, not by __builtin_cpu_supports: that needs a library which clang-cl does not link.
CpuLevel highest_level() {
#if METARANK_LEVELS > 1
  unsigned a, b, c, d;
  constexpr unsigned kSavesState = 1u << 27, kAvx = 1u << 28, kAvx2 = 1u << 5, kAvx512f = 1u << 16;
  if (!__get_cpuid(1, &a, &b, &c, &d) || !(c & kSavesState) || !(c & kAvx)) return CpuLevel::baseline;
  uint32_t saved, high;  // the registers that the operating system saves
  __asm__("xgetbv" : "=a"(saved), "=d"(high) : "c"(0));
  constexpr uint32_t kYmm = 0x06, kZmm = 0xe6;
  if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || (saved & kYmm) != kYmm || !(b & kAvx2)) return CpuLevel::baseline;
  return (saved & kZmm) == kZmm && (b & kAvx512f) ? CpuLevel::avx512 : CpuLevel::avx2;
#else
  return CpuLevel::baseline;
#endif
}

}  // namespace

std::vector<std::string> cpu_levels() { return {kNames, kNames + static_cast<int>(highest_level()) + 1}; }

std::string cpu_level() { return kNames[detail::cpu_level]; }

void choose_cpu_level(const char* name) {
  const std::vector<std::string> possible = cpu_levels();
  detail::cpu_level = static_cast<int>(possible.size()) - 1;
  if (name == nullptr || *name == '\0') return;
  std::string rule;
  for (size_t i = 0; i < possible.size(); ++i) {
    if (possible[i] == name) {
      detail::cpu_level = static_cast<int>(i);
      return;
    }
    rule += (i == 0 ? "" : i + 1 == possible.size() ? " or " : ", ") + possible[i];
  }
  throw std::invalid_argument("METARANK_CPU_LEVEL must be " + rule + " on this processor, got '" + name + "'");
}

}  // namespace metarank
