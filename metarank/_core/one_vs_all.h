// Squared hinge classifiers of every label: for label l, with y_i = 1 where relevant and -1 elsewhere,
//   min 1/2 (||w||^2 + b^2) + C sum_i c_il max(0, 1 - y_i (w.x_i + b))^2,   c_il = positive cost of l or 1,
// by dual coordinate descent, sixteen labels at once (see linear_lanes.h) and on few rows:
//
// Most rows are irrelevant to all labels of a group and unlike their relevant rows: w.x_i is near 0, and what
// they do is to hold the bias near -1 and to push the weights a little against the mean row. So every row
// starts as an irrelevant one with dual 1/n, which gives w = -mean and b = -1 for all labels alike. The working
// set starts from the group's relevant rows. Then the margins of all rows are computed, those above -1 by more
// than a limit for some label join, and the descent goes on; the limit falls to the tolerance, and the last look
// is at all rows. Outside the working set a row's dual stays 1/n, but for the bias: there the rest acts as one
// row without features, of as many times the cost, whose dual is free. With tolerance 0 this is plain descent.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

struct SquaredHingeOptions {
  float C, tolerance;
  float least;  // a weight times its feature's factor below this is dropped
  int max_epochs;
  uint64_t seed;
};

// The classifiers of the labels `order`, sixteen neighbours at a time: CSC of the weights in that order
// (features unsorted), and the biases.
using SparseClassifiers = std::tuple<Array1<int64_t>, Array1<int32_t>, Array1<float>, Array1<float>>;
SparseClassifiers train_squared_hinge(const CsrView& x, const In1<int64_t>& label_indptr,
                                      const In1<int32_t>& label_rows, const In1<float>& positive_cost,
                                      const In1<int32_t>& order, const In1<float>& factor,
                                      const SquaredHingeOptions& options, int n_threads);

}  // namespace metarank
