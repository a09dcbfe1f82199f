// The nearest training rows of a query: whatever their labels, or those of a label (meta-features of Yang & Gopal 2012,
// eq. 1: for each pair (row, label) the distances to the k nearest training points of the label).
#pragma once

#include <tuple>
#include <vector>

#include "arrays.h"
#include "inverted_index.h"

namespace metarank {

// (rows, distances), both (queries, k).
using NearestRows = std::tuple<Array2<int32_t>, Array2<float>>;

// Those rows of n that are searched; checked once.
struct SearchedRows {
  SearchedRows(Ids rows, int64_t n);

  Ids rows;
  bool in_a_row = true, ascend = true;
  std::vector<uint8_t> among;  // by row; empty where all are

  bool has(int32_t row) const { return among.empty() || among[row] != 0; }
};

NearestRows nearest_rows_sparse(const InvertedIndex& index, const CsrView& X, const SearchedRows& rows, int k,
                                int metric, int n_threads);

// proposals (queries, M): rows to look at first; bounds: no row that is not proposed has a smaller key.
NearestRows nearest_rows_dense(In2<float> X, Values sq_norm, In2<float> Q, Ids rows, int k, int metric,
                               In2<int32_t> proposals, In1<double> bounds, int n_threads);

// The k nearest by L2 distance of the rows proposed for each query (queries, M), -1 where there is none; no other row
// is read. Their keys are those of nearest_rows_dense, to the byte.
NearestRows nearest_proposed_dense(In2<float> X, In2<float> Q, In2<int32_t> proposals, int k, int n_threads);

// The pairs (query, label) of a CSR pattern, and the training rows of each label. Rows are checked where they are read,
// so that a call costs what it touches, not the size of the training set.
struct LabelPairs {
  Indptr pair_indptr;
  Ids pair_labels;
  Indptr label_indptr;
  Ids label_rows;
};

// By metric: which of the sorted distances are wanted (the j-th smallest), and the means of their first so many.
struct NeighborColumns {
  std::vector<int> metrics, orders, means;
};

// The training rows, their norms, and the labels of each.
struct DensePoints {
  In2<float> X;
  Values sq_norm;
  double max_sq_norm, max_l1_norm;
  Indptr row_indptr;
  Ids row_labels;
};

// Rows proposed by an outside index for each metric and query, and for each a lower bound of the key of every row that
// was not proposed. They save work; they never change a value.
struct Proposals {
  In3<int32_t> rows;  // (metrics, queries, M)
  In2<double> bounds;      // (metrics, queries)
};

Array2<float> label_neighbors_sparse(const InvertedIndex& index, const CsrView& X, const LabelPairs& pairs,
                                     const NeighborColumns& columns, int n_threads);
Array2<float> label_neighbors_dense(const DensePoints& points, In2<float> Q, const LabelPairs& pairs,
                                    const NeighborColumns& columns, const Proposals& proposals, int n_threads);

// Squared L2 and L1 norms of the rows.
std::tuple<Array1<float>, Array1<float>> row_norms(In2<float> X);

}  // namespace metarank
