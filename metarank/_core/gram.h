// Inner products of all pairs of sparse rows.
//
// Row i meets the rows before it through the postings of its features, so that only features two rows share
// cost anything, and each pair is summed once: in double, features ascending.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// Into `out` (rows, rows), of float32 or float64.
template <typename T>
void sparse_gram(std::int64_t n_features, In1<std::int64_t> indptr, In1<std::int32_t> indices, In1<float> data,
                 Out2<T> out, int n_threads);

}  // namespace metarank
