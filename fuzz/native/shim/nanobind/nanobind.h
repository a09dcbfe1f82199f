// As much of nanobind as the core's files need to compile without Python: arrays are a pointer and a shape,
// bindings are declared and do nothing.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#define NB_MODULE(name, m) void fuzz_module_##name(nanobind::module_& m)

namespace nanobind {

struct object {};
struct module_ : object {
  template <typename... A>
  module_& def(A&&...) { return *this; }
};
struct dict : object {
  struct Item {
    template <typename T>
    Item& operator=(T&&) { return *this; }
  };
  template <typename K>
  Item operator[](K&&) const { return {}; }
};
struct tuple : object {};
struct list : object {
  template <typename T>
  void append(T&&) {}
};
struct str : object {
  template <typename... A>
  explicit str(A&&...) {}
};
struct bytes : object {};
struct capsule : object {
  std::shared_ptr<void> owner;
  capsule() = default;
  template <typename T>
  capsule(T* p, void (*drop)(void*) noexcept) : owner(p, drop) {}
};
struct arg {
  explicit arg(const char*) {}
  arg& noconvert() { return *this; }
  arg none() { return *this; }
  template <typename T>
  arg& operator=(T&&) { return *this; }
};
struct rv_policy {
  enum Value { reference, reference_internal, take_ownership, copy, move };
};
struct gil_scoped_release {};
struct gil_scoped_acquire {};

template <typename... A>
struct init {};
template <typename... A>
struct keep_alive {};
inline object none() { return {}; }
template <typename T>
object cast(T&&) { return {}; }
template <typename... A>
tuple make_tuple(A&&...) { return {}; }

template <typename T, typename... B>
struct class_ {
  template <typename... A>
  class_(module_&, A&&...) {}
  template <typename... A>
  class_& def(A&&...) { return *this; }
  template <typename... A>
  class_& def_static(A&&...) { return *this; }
  template <typename... A>
  class_& def_ro(A&&...) { return *this; }
  template <typename... A>
  class_& def_ro_static(A&&...) { return *this; }
  template <typename... A>
  class_& def_prop_ro(A&&...) { return *this; }
};

}  // namespace nanobind
