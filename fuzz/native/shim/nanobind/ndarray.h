// Arrays as a kernel sees them: a pointer, a shape, and who owns the memory.
#pragma once

#include "nanobind.h"

namespace nanobind {

struct numpy {};
struct c_contig {};
template <int>
struct ndim {};
namespace device {
struct cpu {};
}

template <typename... Args>
struct ArrayOf;
template <typename T, typename... Rest>
struct ArrayOf<T, Rest...> { using Value = T; };
template <typename T, typename... Rest>
struct ArrayOf<numpy, T, Rest...> { using Value = T; };

template <typename... Args>
class ndarray {
 public:
  using Value = typename ArrayOf<Args...>::Value;

  ndarray() = default;
  ndarray(Value* data, std::initializer_list<std::size_t> shape, capsule owner = {})
      : data_(data), shape_(shape), owner_(std::move(owner)) {}

  Value* data() const { return data_; }
  std::size_t ndim() const { return shape_.size(); }
  std::size_t shape(std::size_t i) const { return shape_[i]; }
  std::size_t size() const {
    std::size_t n = 1;
    for (const std::size_t s : shape_) n *= s;
    return n;
  }
  template <typename I>
  Value& operator()(I i) const { return data_[i]; }
  template <typename I, typename J>
  Value& operator()(I i, J j) const { return data_[static_cast<std::size_t>(i) * shape_[1] + static_cast<std::size_t>(j)]; }

 private:
  Value* data_ = nullptr;
  std::vector<std::size_t> shape_;
  capsule owner_;
};

}  // namespace nanobind
