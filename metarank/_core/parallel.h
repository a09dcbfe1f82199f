// parallel_for: the one way this library uses threads.
//
// Blocks of [0, n) are handed out through an atomic counter to n_threads
// workers; the caller's thread is one of them. A body must write only to places
// that belong to its own index, so that results do not depend on the schedule.
// The first exception is carried back to the caller; the others stop early.
#pragma once

#include <cstdint>
#include <exception>

namespace metarank {

// Thrown out of parallel_for when the user pressed Ctrl-C; the bindings turn
// it into KeyboardInterrupt.
struct Interrupted : std::exception {
  const char* what() const noexcept override { return "interrupted"; }
};

// Asked now and then by the caller's thread only: whether to stop. Set by the bindings, so that the kernels stay
// free of Python.
using InterruptCheck = bool (*)();
void set_interrupt_check(InterruptCheck check);

namespace detail {

// A body of any type behind one pointer: what it takes to run it is compiled once.
using Call = void (*)(const void* body, int64_t begin, int64_t end, int worker);
void run_blocks(int64_t n, int n_threads, int64_t block, Call call, const void* body);

}  // namespace detail

// body(begin, end, worker): worker in [0, n_threads) selects scratch space.
template <typename Body>
void parallel_for(int64_t n, int n_threads, int64_t block, const Body& body) {
  const detail::Call call = [](const void* it, int64_t begin, int64_t end, int worker) {
    (*static_cast<const Body*>(it))(begin, end, worker);
  };
  detail::run_blocks(n, n_threads, block, call, &body);
}

}  // namespace metarank
