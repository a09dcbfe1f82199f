// The nearest training rows of a query, whatever their labels.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"
#include "inverted_index.h"

namespace metarank {

// (rows, distances), both (queries, k).
using NearestRows = std::tuple<Array2<std::int32_t>, Array2<float>>;

NearestRows nearest_rows_sparse(const InvertedIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                                In1<float> data, In1<std::int32_t> rows, int k, int metric_id, int n_threads);

// proposals (queries, M): rows to look at first; bounds: no row that is not proposed has a smaller key.
NearestRows nearest_rows_dense(In2<float> X, In1<float> sq_norm, In2<float> Q, In1<std::int32_t> rows, int k,
                               int metric_id, In2<std::int32_t> proposals, In1<double> bounds, int n_threads);

// The k nearest by L2 distance of the rows proposed for each query (queries, M), -1 where there is none; no other row
// is read. Their keys are those of nearest_rows_dense, to the byte.
NearestRows nearest_proposed_dense(In2<float> X, In2<float> Q, In2<std::int32_t> proposals, int k, int n_threads);

}  // namespace metarank
