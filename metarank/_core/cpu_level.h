// Kernels compiled once per level of the processor, called through a table by the level chosen at import.
//
// A kernel is an ordinary function marked METARANK_KERNEL and called as by_level<kernel>(...). Its body is inlined into
// one function a level, and what it calls inline with it. What stays a call (of the standard library, say) is compiled
// for the least processor as everywhere else: so no function of another level can take its place when objects are
// linked, as it could if whole files were compiled with -mavx2.
#pragma once

#include <string>
#include <vector>

#define METARANK_INLINE inline __attribute__((always_inline))
#define METARANK_KERNEL METARANK_INLINE
#define METARANK_LAMBDA_INLINE __attribute__((always_inline))

#if defined(__x86_64__)
#define METARANK_LEVELS 3
#else
#define METARANK_LEVELS 1  // what every processor of its kind has, NEON on arm64
#endif

namespace metarank {

enum class CpuLevel { baseline, avx2, avx512 };

namespace detail {
extern int cpu_level;  // written once, before any kernel is called
}

// What this processor and operating system have, the least first.
std::vector<std::string> cpu_levels();
// The level in use.
std::string cpu_level();
// The highest level, or the one named; std::invalid_argument says which there are.
void choose_cpu_level(const char* name);

template <auto body>
struct Kernel;

template <typename Result, typename... Args, Result (*body)(Args...)>
struct Kernel<body> {
  static Result baseline(Args... args) { return body(args...); }
#if METARANK_LEVELS > 1
  __attribute__((target("avx2"))) static Result avx2(Args... args) { return body(args...); }
  __attribute__((target("avx512f"))) static Result avx512(Args... args) { return body(args...); }
  static constexpr Result (*const table[])(Args...) = {baseline, avx2, avx512};
  Result operator()(Args... args) const { return table[detail::cpu_level](args...); }
#else
  Result operator()(Args... args) const { return baseline(args...); }
#endif
};

template <auto body>
inline constexpr Kernel<body> by_level{};

}  // namespace metarank
