// How Python's arrays become the kernels' and back; what the files of bindings share.
//
// A view refuses a wrong dtype, rank or layout and never converts. A kernel's array gives its memory to NumPy. All
// that is bound here runs without the interpreter's lock.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "../arrays.h"
#include "../neighbors.h"
#include "../sparse_rows.h"
#include "../scored_lists.h"

namespace nb = nanobind;

namespace nanobind::detail {

template <typename T, size_t D>
struct type_caster<metarank::View<T, D>> {
  using Handle = ndarray<T, ndim<static_cast<ssize_t>(D)>, c_contig, device::cpu>;
  using Value = metarank::View<T, D>;
  template <typename>
  using Cast = Value;
  static constexpr auto Name = make_caster<Handle>::Name;
  template <typename>
  static constexpr bool can_cast() {
    return true;
  }

  template <typename Flags>
  bool from_python(handle source, Flags flags, cleanup_list* cleanup) noexcept {
    return handle_.from_python(source, static_cast<Flags>(flags & ~static_cast<Flags>(cast_flags::convert)), cleanup);
  }
  explicit operator Value() {
    std::array<size_t, D> shape;
    for (size_t axis = 0; axis < D; ++axis) shape[axis] = handle_.value.shape(axis);
    return Value(handle_.value.data(), shape);
  }

 private:
  make_caster<Handle> handle_;  // for as long as the call
};

template <typename T, size_t D>
struct type_caster<metarank::Array<T, D>> {
  using Handle = ndarray<numpy, T, ndim<static_cast<ssize_t>(D)>>;
  using Value = metarank::Array<T, D>;
  static constexpr auto Name = make_caster<Handle>::Name;

  static handle from_cpp(Value&& array, rv_policy policy, cleanup_list* cleanup) noexcept {
    auto* owned = new std::vector<T>(std::move(array.values));
    capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
    return make_caster<Handle>::from_cpp(Handle(owned->data(), D, array.shape.data(), owner), policy, cleanup);
  }
};

// A value that is made of another one.
template <typename T, typename From>
struct made_caster {
  using Value = T;
  template <typename>
  using Cast = Value;
  static constexpr auto Name = make_caster<From>::Name;
  template <typename>
  static constexpr bool can_cast() {
    return true;
  }

  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    return from_.from_python(source, flags, cleanup);
  }

 protected:
  make_caster<From> from_;
};

// A plain struct of views and numbers, from a tuple of them in their order.
template <typename Struct, typename... Fields>
struct struct_caster : made_caster<Struct, std::tuple<Fields...>> {
  explicit operator Struct() {
    return std::apply([](auto&&... fields) { return Struct{fields...}; }, this->from_.operator std::tuple<Fields...>());
  }
};

// (indptr, indices, data, n_columns); without the last where who is asked knows it.
template <>
struct type_caster<metarank::CsrView> {
  using Matrix = std::tuple<metarank::Indptr, metarank::Ids, metarank::Values, int64_t>;
  using Rows = std::tuple<metarank::Indptr, metarank::Ids, metarank::Values>;
  using Value = metarank::CsrView;
  template <typename>
  using Cast = Value;
  static constexpr auto Name = const_name("tuple");
  template <typename>
  bool can_cast() const noexcept {
    return true;
  }

  bool from_python(handle source, uint32_t flags, cleanup_list* cleanup) noexcept {
    is_matrix_ = matrix_.from_python(source, flags, cleanup);
    return is_matrix_ || rows_.from_python(source, flags, cleanup);
  }
  explicit operator Value() {
    const auto as_view = [](const auto&... parts) { return Value{parts...}; };
    return is_matrix_ ? std::apply(as_view, matrix_.operator Matrix()) : std::apply(as_view, rows_.operator Rows());
  }

 private:
  make_caster<Matrix> matrix_;
  make_caster<Rows> rows_;
  bool is_matrix_ = false;
};

// (X, sq_norm, max_sq_norm, max_l1_norm, row_indptr, row_labels)
template <>
struct type_caster<metarank::DensePoints> : struct_caster<metarank::DensePoints, metarank::In2<float>, metarank::Values,
                                                          double, double, metarank::Indptr, metarank::Ids> {};

// (indptr, labels, scores)
template <>
struct type_caster<metarank::LabelLists> {
  using Tuple = std::tuple<metarank::Array1<int64_t>, metarank::Array1<int32_t>, metarank::Array1<float>>;
  using Value = metarank::LabelLists;
  static constexpr auto Name = make_caster<Tuple>::Name;

  static handle from_cpp(Value&& lists, rv_policy policy, cleanup_list* cleanup) noexcept {
    return make_caster<Tuple>::from_cpp(
        Tuple(std::move(lists.indptr), std::move(lists.labels), std::move(lists.scores)), policy, cleanup);
  }
};

}  // namespace nanobind::detail

namespace metarank::bindings {

using Names = const char* const;
using Unlocked = nb::call_guard<nb::gil_scoped_release>;

namespace detail {

template <typename Scope, typename Function, size_t... I, typename... More>
void define(Scope& scope, const char* name, Function&& function, Names* names, std::index_sequence<I...>,
            const More&... more) {
  scope.def(name, std::forward<Function>(function), nb::arg(names[I])..., Unlocked(), more...);
}

}  // namespace detail

// A function of the module or a method of a class, by the names of its parameters; then its docstring, if any.
template <typename Scope, typename Function, size_t N, typename... Doc>
void bind(Scope& scope, const char* name, Function&& function, Names (&names)[N], const Doc&... doc) {
  detail::define(scope, name, std::forward<Function>(function), names, std::make_index_sequence<N>(), doc...);
}

// A constructor, construct(memory, arguments...).
template <typename Class, typename Construct, size_t N>
void bind_init(Class& scope, Construct&& construct, Names (&names)[N]) {
  bind(scope, "__init__", std::forward<Construct>(construct), names);
}

// One whose object reads on in the arrays and objects it was given: those arguments (the first is 2) live as long.
template <size_t... Held, typename Class, typename Construct, size_t N>
void bind_borrower(Class& scope, Construct&& construct, Names (&names)[N]) {
  detail::define(scope, "__init__", std::forward<Construct>(construct), names, std::make_index_sequence<N>(),
                 nb::keep_alive<1, Held>()...);
}

// An option by its name.
template <typename Options, typename T>
struct Field {
  const char* name;
  T Options::*member;
};
template <typename Options, typename T>
Field(const char*, T Options::*) -> Field<Options, T>;  // Clang has none of its own before 17

// Options as a class whose constructor takes all of them, each by its name.
template <typename Options, typename... T>
void bind_options(nb::module_& m, const char* name, const Field<Options, T>&... fields) {
  nb::class_<Options>(m, name).def(
      "__init__",
      [members = std::make_tuple(fields.member...)](Options* self, T... values) {
        new (self) Options{};
        std::apply([&](auto... member) { ((self->*member = std::move(values)), ...); }, members);
      },
      nb::kw_only(), nb::arg(fields.name)...);
}

// NumPy's, without a copy, by name.
template <typename... T, size_t N>
nb::dict to_dict(Names (&names)[N], std::vector<T>&... values) {
  static_assert(sizeof...(T) == N);
  nb::dict out;
  size_t i = 0;
  ((out[names[i++]] = nb::cast(to_array(std::move(values)))), ...);
  return out;
}

// One function a family, each in a file of its own.
void bind_boosting(nb::module_& m);
void bind_instance_trees(nb::module_& m);
void bind_label_trees(nb::module_& m);
void bind_linear(nb::module_& m);
void bind_lists(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_neighbors(nb::module_& m);
void bind_objectives(nb::module_& m);
void bind_plan(nb::module_& m);
void bind_rows(nb::module_& m);
void bind_text(nb::module_& m);

}  // namespace metarank::bindings
