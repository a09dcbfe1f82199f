// Logistic regression with terms of each label, shrunk towards the pooled ones.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// sum_j x_j (shared_j + by_label[l, j]) of each pair; labels have terms for the first columns of X.
Array1<double> label_logistic_scores(In2<double> X, In1<std::int32_t> index, In1<double> shared,
                                     In2<double> by_label);

// Newton's method from `shared` (p,) and `by_label` (k, q) on
//   sum_i weight_i log_loss_i + 1/2 sum_j ridge_j shared_j^2 + label_ridge / 2 |by_label|^2.
// No step raises the loss. The Hessian is an arrow: the labels' blocks are eliminated one by one.
std::tuple<Array1<double>, Array2<double>> fit_label_logistic(In2<double> X, In1<std::int32_t> index,
                                                              In1<double> target, In1<double> weight,
                                                              In1<double> shared, In2<double> by_label,
                                                              In1<double> ridge, double label_ridge);

}  // namespace metarank
