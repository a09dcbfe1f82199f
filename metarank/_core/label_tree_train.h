// Training of label trees: for every node, classifiers that say which of its children to visit.
//
// A row reaches a node with the largest relevance m of any label below it (1 at the root). For
// child c of node p the row counts with cost m(p) and has the soft target m(c) / m(p): the
// probability of going on to c (Prabhu et al. 2020, eq. 5 and 6). Binary relevance makes both 1
// or 0, which is Parabel.
//
// All rows of a node are gathered once, their features renumbered, the most frequent first; the
// classifiers of its children then train sixteen at a time (linear_lanes.h). One task a node.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "block_scores.h"
#include "hierarchy.h"
#include "linear_lanes.h"
#include "weight_blocks.h"

namespace metarank {

// The rows of each label, and their relevances in (0, 1].
struct LabelRows {
  In1<int64_t> indptr;
  In1<int32_t> rows;
  In1<float> relevance;
};

struct LabelTreeOptions {
  LinearLoss loss;
  double C;
  bool mean_cost;  // C / |I_n| in place of C
  double tolerance;
  int max_epochs;
  double bias;       // value of the constant feature; 0 for none
  double threshold;  // smaller weights are dropped, negative ones up to half of it; the others make up for it
  int visitors;      // rows that a search with so wide a beam takes to a leaf are met there in training; 0 for none
  Link link;         // of that search
  uint64_t seed;
};

// Flat arrays of the trained classifiers, and for each node the share of rows below.
struct TrainedTrees {
  WeightArrays weights;
  std::vector<float> frac;
};

TrainedTrees train_label_trees(const CsrView& rows, const LabelRows& labels, const In1<float>& row_cost,
                               const HierarchyView& hierarchy, const LabelTreeOptions& options, int n_threads);

}  // namespace metarank
