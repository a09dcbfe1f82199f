// Losses of scored lists and their derivatives in the scores, and how well scores order lists.
//
// Every loss is a sum over lists, in their order, so that threads do not show.
#pragma once

#include <string>
#include <tuple>

#include "arrays.h"

namespace metarank {

using LossAndGradient = std::tuple<double, Array1<double>>;
using Derivatives = std::tuple<double, Array1<double>, Array1<double>>;  // loss, gradient, Hessian's diagonal

// "logistic", "listnet", "ranksvm" or "svmmap": the sum over lists of weight * loss(list).
LossAndGradient list_loss(const std::string& name, In1<double> scores, In1<float> gains, In1<int64_t> indptr,
                          In1<double> weights, int n_threads);

// LambdaRank (Burges 2010) as LightGBM computes it.
//
// A pair of different gains, of which one stands among the first `truncation` ranks, weighs |gain difference| |discount
// difference| / ideal DCG. With `norm` the weight is divided by 0.01 + |score difference|, and a list's sums by what
// makes their total log2(1 + total). Ranks are those of `rank_by`. `scores` and `rank_by` are in the caller's order of
// rows, `gains` list by list as `order` puts them.
Derivatives lambda_gradients(In1<double> scores, In1<double> rank_by, In1<double> gains, In1<double> ideal,
                             In1<int64_t> order, In1<int64_t> indptr, double sigmoid,
                             int64_t truncation, bool norm, bool with_loss, int n_threads);

// Pairwise surrogates of the area under the ROC curve.
//
//   loss = sum over y_i > y_j of c_ij phi(s_i - s_j) / sum over y_i > y_j of c_ij
//
// with phi(z) = log(1 + exp(-z)) ("logistic"), max(0, 1 - z) ("hinge") or the share of pairs in the wrong order ("step",
// without derivatives), and c_ij = y_i - y_j (`difference`) or 1. The mean over the groups that have a pair of each
// group's loss; or, where `costs` has an entry a group, the sum over the groups of each one's summed loss over its
// entry. `order` lists the rows group by group, each by ascending target.
Derivatives auc_gradients(In1<double> scores, In1<double> target, In1<int64_t> order, In1<int64_t> indptr,
                          In1<double> costs, const std::string& surrogate, bool difference, bool with_loss,
                          int n_threads);

// The greatest DCG of the first `truncation` ranks that each list can have.
Array1<double> ideal_dcg(In1<double> gains, In1<int64_t> indptr, int64_t truncation, int n_threads);

// nDCG of the first `truncation` ranks of each list; NaN where no gain is positive. Tied rows share the mean of their
// gains, so that their order does not matter.
Array1<double> list_ndcg(In1<double> scores, In1<double> gains, In1<double> ideal, In1<int64_t> order,
                         In1<int64_t> indptr, int64_t truncation, int n_threads);

// (lists, 3): average precision, nDCG and RankLoss; NaN where no gain is positive. Tied scores count against the first,
// go to the earlier pair in the second, and count half in the third.
Array2<double> list_quality(In1<double> scores, In1<float> gains, In1<int64_t> indptr, int n_threads);

}  // namespace metarank
