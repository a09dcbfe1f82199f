// Scratch of past calls: single queries come again and again, and would spend much of their
// time on fresh memory.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

namespace metarank {

template <typename Scratch>
class ScratchPool {
 public:
  static constexpr std::int64_t kMostRows = 16;

  template <typename Make>
  std::unique_ptr<Scratch> take(const Make& make) {
    {
      const std::lock_guard lock(mutex_);
      if (!free_.empty()) {
        auto scratch = std::move(free_.back());
        free_.pop_back();
        return scratch;
      }
    }
    return make();
  }

  void give_back(std::unique_ptr<Scratch> scratch) {
    const std::lock_guard lock(mutex_);
    free_.push_back(std::move(scratch));
  }

 private:
  std::mutex mutex_;
  std::vector<std::unique_ptr<Scratch>> free_;
};

}  // namespace metarank
