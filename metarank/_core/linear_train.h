// One-vs-rest linear SVM with the squared hinge loss: for each label
//   min_w  1/2 ||w||^2 + C sum_i max(0, 1 - y_i w.x_i)^2,   y_i = 1 where relevant, -1 elsewhere,
// with a constant feature 1 for the bias, by dual coordinate descent with shrinking
// (Hsieh et al. 2008, algorithm 3, the method of LIBLINEAR). Labels are independent: one a task.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

std::tuple<Array2<float>, Array1<float>> train_svm_dense(const In2<float>& X, const In1<std::int64_t>& label_indptr,
                                                         const In1<std::int32_t>& label_rows, double C,
                                                         double tolerance, int max_epochs, std::uint64_t seed,
                                                         int n_threads);

std::tuple<Array2<float>, Array1<float>> train_svm_sparse(const In1<std::int64_t>& x_indptr,
                                                          const In1<std::int32_t>& x_indices,
                                                          const In1<float>& x_data, std::int64_t n_features,
                                                          const In1<std::int64_t>& label_indptr,
                                                          const In1<std::int32_t>& label_rows, double C,
                                                          double tolerance, int max_epochs, std::uint64_t seed,
                                                          int n_threads);

}  // namespace metarank
