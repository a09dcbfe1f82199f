// Arrays as the kernels take and give them: a pointer and a shape that someone else holds, or numbers of one's own.
//
// Kernels know nothing of who calls them. Those who do (bindings/, the fuzzers) make views of their arrays, keep
// these alive as long as what was made of them, and take what comes back.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

namespace metarank {

// Saved arrays are little-endian, and kernels read numbers out of bytes.
static_assert(std::endian::native == std::endian::little, "metarank needs a little-endian processor");

// A C-contiguous array in someone else's memory.
template <typename T, size_t D>
class View {
 public:
  View() = default;
  View(T* data, const std::array<size_t, D>& shape) : data_(data), shape_(shape) {}

  T* data() const { return data_; }
  size_t shape(size_t axis) const { return shape_[axis]; }
  size_t size() const {
    size_t n = 1;
    for (const size_t s : shape_) n *= s;
    return n;
  }
  template <typename I>
    requires(D == 1)
  T& operator()(I i) const {
    return data_[i];
  }
  template <typename I, typename J>
    requires(D == 2)
  T& operator()(I i, J j) const {
    return data_[static_cast<size_t>(i) * shape_[1] + static_cast<size_t>(j)];
  }

 private:
  T* data_ = nullptr;
  std::array<size_t, D> shape_{};
};

// What a kernel reads.
template <typename T>
using In1 = View<const T, 1>;
template <typename T>
using In2 = View<const T, 2>;
template <typename T>
using In3 = View<const T, 3>;
// The CSR arrays: where each row begins, the columns of its entries, and their values.
using Indptr = In1<int64_t>;
using Ids = In1<int32_t>;
using Values = In1<float>;
// What it writes to in place.
template <typename T>
using Out2 = View<T, 2>;

// What it gives: values in C order.
template <typename T, size_t D>
struct Array {
  std::vector<T> values;
  std::array<size_t, D> shape;
};
template <typename T>
using Array1 = Array<T, 1>;
template <typename T>
using Array2 = Array<T, 2>;

template <typename T>
Array1<T> to_array(std::vector<T>&& values) {
  const size_t n = values.size();
  return {std::move(values), {n}};
}

template <typename T>
Array2<T> to_array(std::vector<T>&& values, size_t rows, size_t cols) {
  return {std::move(values), {rows, cols}};
}

// What was made, as what is read; it must stay.
template <typename T>
In1<T> view_of(const std::vector<T>& values) {
  return In1<T>(values.data(), {values.size()});
}
template <typename T>
In1<T> view_of(const Array1<T>& array) {
  return view_of(array.values);
}
template <typename T>
In2<T> view_of(const Array2<T>& array) {
  return In2<T>(array.values.data(), array.shape);
}

// More entries, or rows.
template <typename T, size_t D>
void append(Array<T, D>& all, Array<T, D>&& more) {
  all.values.insert(all.values.end(), more.values.begin(), more.values.end());
  more.shape[0] += all.shape[0];
  all.shape = more.shape;
}

// A CSR matrix in someone else's memory, as it came: nothing about it is checked.
struct CsrView {
  Indptr indptr;
  Ids indices;
  Values data;
  int64_t n_columns = -1;
};

inline void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

// For literals: no string is built unless the check fails, so it may stand in a loop.
inline void require(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(message);
}

// A CSR row pointer over m entries.
inline void require_indptr(const In1<int64_t>& indptr, int64_t m, const std::string& name) {
  const int64_t* p = indptr.data();
  const size_t n = indptr.shape(0);
  require(n > 0 && p[0] == 0 && p[n - 1] == m, name + " must start at 0 and end at the number of entries");
  for (size_t i = 1; i < n; ++i)
    if (p[i - 1] > p[i]) throw std::invalid_argument(name + " must not decrease");
}

}  // namespace metarank
