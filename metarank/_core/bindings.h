// What the binding files share: array types that refuse a wrong dtype, rank or
// layout without copying, and helpers that hand a vector's memory to NumPy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "parallel.h"

namespace nb = nanobind;

namespace metarank {

// Read-only inputs.
template <typename T>
using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
// Written in place by the kernel.
template <typename T>
using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using Array1 = nb::ndarray<nb::numpy, T, nb::ndim<1>>;
template <typename T>
using Array2 = nb::ndarray<nb::numpy, T, nb::ndim<2>>;

// A NumPy array that owns the vector's memory; no copy.
template <typename T>
Array1<T> to_numpy(std::vector<T>&& values) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Array1<T>(owned->data(), {owned->size()}, owner);
}

template <typename T>
Array2<T> to_numpy(std::vector<T>&& values, std::size_t rows, std::size_t cols) {
  auto* owned = new std::vector<T>(std::move(values));
  nb::capsule owner(owned, [](void* p) noexcept { delete static_cast<std::vector<T>*>(p); });
  return Array2<T>(owned->data(), {rows, cols}, owner);
}

inline void require(bool ok, const std::string& message) {
  if (!ok) throw std::invalid_argument(message);
}

// For literals: no string is built unless the check fails, so it may stand in a loop.
inline void require(bool ok, const char* message) {
  if (!ok) throw std::invalid_argument(message);
}

// A CSR row pointer over m entries.
inline void require_indptr(const In1<std::int64_t>& indptr, std::int64_t m, const std::string& name) {
  const std::int64_t* p = indptr.data();
  const std::size_t n = indptr.shape(0);
  require(n > 0 && p[0] == 0 && p[n - 1] == m, name + " must start at 0 and end at the number of entries");
  for (std::size_t i = 1; i < n; ++i)
    if (p[i - 1] > p[i]) throw std::invalid_argument(name + " must not decrease");
}

// One function a kernel family, defined in its own .cpp file.
void bind_elementary(nb::module_& m);
void bind_hashing(nb::module_& m);
void bind_names(nb::module_& m);
void bind_gbdt_predict(nb::module_& m);
void bind_text_parse(nb::module_& m);
void bind_pair_scores(nb::module_& m);
void bind_rank_gradients(nb::module_& m);
void bind_auc_gradients(nb::module_& m);
void bind_lambda_gradients(nb::module_& m);
void bind_linear_train(nb::module_& m);
void bind_label_tree_train(nb::module_& m);
void bind_unit_rows(nb::module_& m);
void bind_linear_predict(nb::module_& m);
void bind_kernel_machine(nb::module_& m);
void bind_forest_predict(nb::module_& m);
void bind_metrics(nb::module_& m);
void bind_regression_errors(nb::module_& m);
void bind_topk(nb::module_& m);
void bind_inverted_index(nb::module_& m);
void bind_label_neighbors(nb::module_& m);
void bind_neighbor_votes(nb::module_& m);
void bind_centroid(nb::module_& m);
void bind_gram(nb::module_& m);
void bind_label_means(nb::module_& m);
void bind_label_mean_index(nb::module_& m);
void bind_candidate_lists(nb::module_& m);
void bind_standardize(nb::module_& m);
void bind_cuts(nb::module_& m);
void bind_label_vectors(nb::module_& m);
void bind_label_partition(nb::module_& m);
void bind_weight_blocks(nb::module_& m);
void bind_weight_index(nb::module_& m);
void bind_label_trees(nb::module_& m);
void bind_one_vs_all(nb::module_& m);
void bind_instance_tree_train(nb::module_& m);
void bind_instance_trees(nb::module_& m);
void bind_text_encoder(nb::module_& m);
void bind_vector_scores(nb::module_& m);

}  // namespace metarank
