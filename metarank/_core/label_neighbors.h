// Meta-features of Yang & Gopal (2012), eq. 1: for each pair (row, label) the
// distances to the k nearest training points of the label.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "arrays.h"
#include "inverted_index.h"

namespace metarank {

// The pairs (query, label) of a CSR pattern, and the training rows of each label.
struct LabelPairs {
  In1<std::int64_t> pair_indptr;
  In1<std::int32_t> pair_labels;
  In1<std::int64_t> label_indptr;
  In1<std::int32_t> label_rows;
};

// By metric: which of the sorted distances are wanted (the j-th smallest), and the means of their first so many.
struct NeighborColumns {
  std::vector<int> metrics, orders, means;
};

// The training rows, their norms, and the labels of each.
struct DensePoints {
  In2<float> X;
  In1<float> sq_norm;
  double max_sq_norm, max_l1_norm;
  In1<std::int64_t> row_indptr;
  In1<std::int32_t> row_labels;
};

// Rows proposed by an outside index for each metric and query, and for each a lower bound of the
// key of every row that was not proposed. They save work; they never change a value.
struct Proposals {
  In3<std::int32_t> rows;  // (metrics, queries, M)
  In2<double> bounds;      // (metrics, queries)

  std::int64_t per_query() const { return static_cast<std::int64_t>(rows.shape(2)); }
  const std::int32_t* of(std::size_t slot, std::int64_t q) const {
    return rows.data() + (static_cast<std::int64_t>(slot * rows.shape(1)) + q) * per_query();
  }
  double bound(std::size_t slot, std::int64_t q) const { return bounds(slot, static_cast<std::size_t>(q)); }
};

Array2<float> label_neighbors_sparse(const InvertedIndex& index, In1<std::int64_t> indptr, In1<std::int32_t> indices,
                                     In1<float> data, const LabelPairs& asked, const NeighborColumns& wanted,
                                     int n_threads);

Array2<float> label_neighbors_dense(const DensePoints& points, In2<float> Q, const LabelPairs& asked,
                                    const NeighborColumns& wanted, const Proposals& proposals, int n_threads);

// Squared L2 and L1 norms of the rows.
std::tuple<Array1<float>, Array1<float>> row_norms(In2<float> X);

}  // namespace metarank
