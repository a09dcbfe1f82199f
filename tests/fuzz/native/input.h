// The bytes of an input as arrays: for each array two bytes of length, then its values. Each array is copied to
// a block of its own, of just its size, so that the address sanitizer sees a read beyond it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <vector>

#include "arrays.h"

// Rows, features and labels that an input may ask for: what is declared takes no memory in the input.
constexpr std::int64_t kMostDeclared = 4096;

// Rows of X, and the lists of labels that are asked for, as arrays.
using Csr = metarank::CsrView;
struct Lists {
  metarank::In1<std::int64_t> indptr;
  metarank::In1<std::int32_t> labels;
};

class Input {
 public:
  Input(const std::uint8_t* data, std::size_t size) : p_(data), end_(data + size) {}

  std::uint8_t byte() { return p_ < end_ ? *p_++ : std::uint8_t{0}; }
  std::uint16_t word() {
    const std::uint16_t low = byte();
    return static_cast<std::uint16_t>(low | byte() << 8);
  }
  std::int64_t declared() { return word() % (kMostDeclared + 1); }

  // Odd lengths that the header promises and the input does not have are cut.
  template <typename T>
  metarank::In1<T> array() {
    const std::size_t asked = word();
    const std::size_t n = std::min(asked, static_cast<std::size_t>(end_ - p_) / sizeof(T));
    T* values = take<T>(n);
    return metarank::In1<T>(values, {n});
  }
  template <typename T>
  metarank::In2<T> matrix(std::size_t columns) {
    const std::size_t asked = word(), row = sizeof(T) * std::max<std::size_t>(1, columns);
    const std::size_t rows = std::min(asked, static_cast<std::size_t>(end_ - p_) / row);
    T* values = take<T>(rows * columns);
    return metarank::In2<T>(values, {rows, columns});
  }
  Csr csr(std::int64_t n_columns = -1) {
    const auto indptr = array<std::int64_t>();
    const auto indices = array<std::int32_t>();
    return {indptr, indices, array<float>(), n_columns};
  }
  Lists lists() { return {array<std::int64_t>(), array<std::int32_t>()}; }

 private:
  template <typename T>
  T* take(std::size_t n) {
    auto block = std::shared_ptr<T[]>(new T[n]);
    if (n > 0) std::memcpy(block.get(), p_, n * sizeof(T));
    p_ += n * sizeof(T);
    kept_.push_back(block);
    return block.get();
  }

  const std::uint8_t* p_;
  const std::uint8_t* end_;
  std::vector<std::shared_ptr<void>> kept_;
};

// A refusal is what a kernel answers to a bad input; anything else thrown ends the process.
template <typename Body>
int refusing(const std::uint8_t* data, std::size_t size, const Body& body) {
  Input in(data, size);
  try {
    body(in);
  } catch (const std::invalid_argument&) {
    return 0;
  }
  return 1;
}
