// parallel_for: the one way this library uses threads.
//
// Blocks of [0, n) are handed out through an atomic counter to n_threads
// workers; the caller's thread is one of them. A body must write only to places
// that belong to its own index, so that results do not depend on the schedule.
// The first exception is carried back to the caller; the others stop early.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace metarank {

// Thrown out of parallel_for when the user pressed Ctrl-C; the bindings turn
// it into KeyboardInterrupt.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Asked now and then by the caller's thread only. Set by bindings.cpp so that
// the kernels stay free of Python.
using InterruptCheck = bool (*)();
inline std::atomic<InterruptCheck>& interrupt_check() {
  static std::atomic<InterruptCheck> check{nullptr};
  return check;
}

// body(begin, end, worker): worker in [0, n_threads) selects scratch space.
inline void parallel_for(std::int64_t n, int n_threads, std::int64_t block,
                         const std::function<void(std::int64_t, std::int64_t, int)>& body) {
  if (n <= 0) return;
  block = std::max<std::int64_t>(1, block);
  const std::int64_t n_blocks = (n + block - 1) / block;
  const int workers = static_cast<int>(std::max<std::int64_t>(1, std::min<std::int64_t>(n_threads, n_blocks)));
  std::atomic<std::int64_t> next{0};
  std::atomic<bool> stop{false};
  std::exception_ptr error;
  std::mutex error_mutex;

  // Asking takes the interpreter's lock, which another thread may hold for
  // milliseconds: short calls never ask.
  auto asked = std::chrono::steady_clock::now();
  auto work = [&](int worker) {
    try {
      for (;;) {
        const std::int64_t b = next.fetch_add(1, std::memory_order_relaxed);
        if (b >= n_blocks || stop.load(std::memory_order_relaxed)) return;
        if (worker == 0 && std::chrono::steady_clock::now() - asked > std::chrono::milliseconds(100)) {
          asked = std::chrono::steady_clock::now();
          const InterruptCheck check = interrupt_check().load(std::memory_order_relaxed);
          if (check != nullptr && check()) throw Interrupted();
        }
        body(b * block, std::min(n, (b + 1) * block), worker);
      }
    } catch (...) {
      const std::lock_guard<std::mutex> lock(error_mutex);
      if (!error) error = std::current_exception();
      stop.store(true, std::memory_order_relaxed);
    }
  };

  std::vector<std::thread> threads;
  threads.reserve(static_cast<std::size_t>(workers - 1));
  try {
    for (int w = 1; w < workers; ++w) threads.emplace_back(work, w);
  } catch (const std::system_error&) {
    // No more threads to be had: the ones that started, and this one, do all the work.
  }
  work(0);
  for (auto& t : threads) t.join();
  if (error) std::rethrow_exception(error);
}

}  // namespace metarank
