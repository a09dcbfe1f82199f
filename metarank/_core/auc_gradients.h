// Pairwise surrogates of the area under the ROC curve, and their derivatives.
//
//   loss = sum over y_i > y_j of c_ij phi(s_i - s_j) / sum over y_i > y_j of c_ij
//
// with phi(z) = log(1 + exp(-z)) or max(0, 1 - z), and c_ij = y_i - y_j or 1.
// A sample is ordered by its target and cut in two at a grade, again and again.
// At a cut, with m the greatest grade below it,
//
//   c_ij = (y_i - m) + (m - y_j)        two terms that are never negative,
//
// so all pairs across it need only sums over one side of phi and of phi times
// a weight. Hinge: running sums along both sides, sorted by score, give these
// exactly. Logistic: few pairs are taken one by one; many go over a grid of
// scores of spacing 1/32. A score is deposited on the four nodes around it with
// cubic weights, nodes meet nodes, and the sums are read off with the same
// weights, each step with a relative error of about 1e-8.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// The mean over the groups that have a pair of each group's mean loss over its
// pairs; or, where `costs` has an entry a group, the sum over the groups of each
// group's summed loss over its entry. `order` lists the rows group by group, each
// by ascending target.
std::tuple<double, Array1<double>, Array1<double>> auc_gradients(In1<double> scores, In1<double> target,
                                                                 In1<std::int64_t> order, In1<std::int64_t> indptr,
                                                                 In1<double> costs, const std::string& name,
                                                                 bool difference, bool with_loss, int n_threads);

}  // namespace metarank
