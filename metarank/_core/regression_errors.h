// Sums of the errors |predicted - true| of each row over all labels, without a dense row where none is given.
//
// Most labels are neither relevant nor predicted: their error is 0. The others are met in one walk down two
// ascending lists, so that a row costs what it stores. Every sum runs over descending errors, or over ascending
// labels where none is left out: the same numbers in any container give the same bytes.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// (sum of the k largest errors, sum of their squares) of each row.
using ErrorSums = std::tuple<Array1<double>, Array1<double>>;

template <typename T>
ErrorSums largest_errors_dense(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values,
                               In2<T> scores, std::int64_t k, int n_threads);

template <typename T>
ErrorSums largest_errors_listed(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values,
                                In1<std::int64_t> indptr, In1<std::int32_t> labels, In1<T> scores, std::int64_t k,
                                int n_threads);

// Sum of the errors of the k labels with the greatest scores of each row.
template <typename T>
Array1<double> predicted_errors_dense(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values,
                                      In2<T> scores, std::int64_t k, int n_threads);

template <typename T>
Array1<double> predicted_errors_listed(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values,
                                       In1<std::int64_t> indptr, In1<std::int32_t> labels, In1<T> scores,
                                       std::int64_t k, int n_threads);

}  // namespace metarank
