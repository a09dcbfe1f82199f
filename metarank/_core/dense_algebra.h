// Sums of products of dense matrices, in double and in one order: what fits would otherwise ask of BLAS and LAPACK,
// which sum in an order that hangs on the processor.
#pragma once

#include <cstdint>

#include "arrays.h"

namespace metarank {

// A' diag(weight) A, of A (n, d): rows are added in fours, in order.
Array2<double> weighted_gram(const In2<double>& A, const In1<double>& weight, int n_threads);

// A x, each row's products summed in eight lanes.
Array1<double> times(const In2<double>& A, const In1<double>& x);

// A' v, rows in order.
Array1<double> transposed_times(const In2<double>& A, const In1<double>& v);

double inner_product(const In1<double>& a, const In1<double>& b);

// R, upper triangular with R'R = M, of which the upper triangle is read; std::invalid_argument unless M is positive
// definite.
Array2<double> upper_factor(const In2<double>& M);

// The x of R x = b, or of R'x = b.
Array1<double> solve_upper(const In2<double>& R, const In1<double>& b, bool transposed);

}  // namespace metarank
