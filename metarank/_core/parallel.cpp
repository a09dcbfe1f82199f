#include "parallel.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace metarank {

namespace {

std::atomic<InterruptCheck> interrupt_check{nullptr};

}  // namespace

void set_interrupt_check(InterruptCheck check) { interrupt_check.store(check); }

void detail::run_blocks(int64_t n, int n_threads, int64_t block, Call call, const void* body) {
  if (n <= 0) return;
  block = std::max<int64_t>(1, block);
  const int64_t n_blocks = (n + block - 1) / block;
  const int workers = static_cast<int>(std::max<int64_t>(1, std::min<int64_t>(n_threads, n_blocks)));
  std::atomic<int64_t> next{0};
  std::atomic<bool> stop{false};
  std::exception_ptr error;
  std::mutex error_mutex;

  // Asking takes the interpreter's lock, which another thread may hold for
  // milliseconds: short calls never ask.
  auto asked = std::chrono::steady_clock::now();
  auto work = [&](int worker) {
    try {
      for (;;) {
        const int64_t b = next.fetch_add(1, std::memory_order_relaxed);
        if (b >= n_blocks || stop.load(std::memory_order_relaxed)) return;
        if (worker == 0 && std::chrono::steady_clock::now() - asked > std::chrono::milliseconds(100)) {
          asked = std::chrono::steady_clock::now();
          const InterruptCheck check = interrupt_check.load(std::memory_order_relaxed);
          if (check != nullptr && check()) throw Interrupted();
        }
        call(body, b * block, std::min(n, (b + 1) * block), worker);
      }
    } catch (...) {
      const std::lock_guard<std::mutex> lock(error_mutex);
      if (!error) error = std::current_exception();
      stop.store(true, std::memory_order_relaxed);
    }
  };

  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(workers - 1));
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
