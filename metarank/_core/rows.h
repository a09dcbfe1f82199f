// Rows of a CSR matrix: are they canonical; scaled; their inner products. Folds of rows, and functions of plain arrays.
#pragma once

#include "arrays.h"
#include "elementary.h"

namespace metarank {

// The values of each row divided by its length, summed in double in the order stored; zero rows stay.
Array1<float> unit_rows(Indptr indptr, Values data);

// Whether columns ascend within [0, n_features) and values are finite and not zero.
bool is_canonical(In1<int32_t> indptr, Ids indices, Values data, int64_t n_features);

// Rows as texts: values v weighted as (1 + ln v) * weight of the column where there are weights (0 where v is not
// positive), then divided by their length. Sums in double in the order stored; zero rows stay.
Array1<float> text_rows(Indptr indptr, Ids indices, Values data, Values weights);

// Inner products of all pairs of sparse rows, into `out` (rows, rows). Row i meets the rows before it through the postings
// of its features, so that only features two rows share cost anything, and each pair is summed once: in double,
// features ascending.
template <typename T>
void sparse_gram(const CsrView& X, Out2<T> out, int n_threads);

// The fold of each row: hash(seed, row number) mod n_folds.
Array1<int32_t> fold_of_rows(int64_t n, int32_t n_folds, uint64_t seed);

// A function of elementary.h, on an array.
template <double (*function)(double)>
Array1<double> each(In1<double> x);

// Sums of products of dense matrices, in double and in one order: what fits would otherwise ask of BLAS and LAPACK,
// which sum in an order that hangs on the processor.

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
