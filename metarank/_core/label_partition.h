// Hierarchical clustering of label vectors into one label tree, by balanced spherical 2-means
// (Prabhu et al. 2018; Malinen and Franti 2014).
//
// A node of more than max_leaf labels is cut into the fewest groups, k, below which as few levels are needed as by
// `branching` everywhere: a search chooses among many nodes at the last level, rather than at the first. It takes
// log2(k) rounds of 2-means, whose two sides are as large as the groups they are to be cut into; a group
// becomes a child node, a group of one label the label's slot. The rounds of all nodes of a level go
// together: long label lists share the threads inside one cut, short ones are spread over them.
//
// Groups that need not be balanced (Khandagale et al. 2020, Bonsai) are those of spherical k-means; of the k, those
// without a label are no groups. Below the first kFreeDepth levels, and where k-means leaves all labels in one group,
// groups are balanced all the same: that bounds the depth.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

struct Clustering {
  int64_t branching, max_leaf;
  int max_iterations;
  double tolerance;
  int64_t sample;  // labels that 2-means looks at before its last assignment
  uint64_t seed;
  bool balanced;
};

// (child_start, child) of one tree over `labels`, rows of V; children >= 0 are nodes, ~label else.
using LabelTree = std::tuple<Array1<int64_t>, Array1<int32_t>>;
LabelTree partition_labels_dense(In2<float> V, In1<int32_t> labels, const Clustering& how, int n_threads);
LabelTree partition_labels_sparse(const CsrView& V, In1<int32_t> labels, const Clustering& how, int n_threads);

// A' (C D), of sparse A (n, m) and C (n, k) and dense D (k, w), w a multiple of 32: rows in order. C D is never stored.
Array2<float> transposed_product(const CsrView& A, const CsrView& C, const In2<float>& D, int n_threads);

}  // namespace metarank
