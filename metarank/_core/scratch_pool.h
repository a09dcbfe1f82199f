// Scratch of past calls: single queries come again and again, and would spend much of their time on fresh memory.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <vector>

namespace metarank {

template <typename Scratch>
class ScratchPool {
 public:
  // Back to the pool, unless an error left it as it was.
  struct GiveBack {
    ScratchPool* pool;
    void operator()(Scratch* scratch) const {
      std::unique_ptr<Scratch> owned(scratch);
      if (std::uncaught_exceptions() > 0) return;
      const std::lock_guard lock(pool->mutex_);
      pool->free_.push_back(std::move(owned));
    }
  };
  using Lease = std::unique_ptr<Scratch, GiveBack>;

  // Made of the arguments where none is free.
  template <typename... Args>
  Lease take(const Args&... args) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        Scratch* const scratch = free_.back().release();
        free_.pop_back();
        return Lease(scratch, {this});
      }
    }
    return Lease(new Scratch(args...), {this});
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace metarank
