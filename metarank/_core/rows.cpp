#include "rows.h"

#include <algorithm>
#include <cmath>

#include "sparse_rows.h"
#include "parallel.h"
#include "rng.h"

namespace metarank {

Array1<float> unit_rows(Indptr indptr, Values data) {
  require_indptr(indptr, static_cast<int64_t>(data.shape(0)), "X.indptr");
  std::vector<float> out(data.shape(0));
  const float* x = data.data();
  for (size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    double sum = 0.0;
    for (int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p) sum += static_cast<double>(x[p]) * x[p];
    const double inverse = sum > 0.0 ? 1.0 / std::sqrt(sum) : 0.0;
    for (int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p)
      out[p] = static_cast<float>(static_cast<double>(x[p]) * inverse);
  }
  return to_array(std::move(out));
}

bool is_canonical(In1<int32_t> indptr, Ids indices, Values data, int64_t n_features) {
  const size_t nnz = data.shape(0);
  if (indptr.shape(0) == 0 || indices.shape(0) != nnz || indptr.data()[0] != 0 ||
      indptr.data()[indptr.shape(0) - 1] != static_cast<int64_t>(nnz))
    return false;
  bool sound = true;
  for (size_t p = 0; p < nnz; ++p) sound &= std::isfinite(data.data()[p]) && data.data()[p] != 0.0f;
  for (size_t i = 0; i + 1 < indptr.shape(0) && sound; ++i) {
    const int64_t first = indptr.data()[i], last = indptr.data()[i + 1];
    if (first > last || last > static_cast<int64_t>(nnz)) return false;
    int32_t previous = -1;
    for (int64_t p = first; p < last; ++p) {
      sound &= indices.data()[p] > previous;
      previous = indices.data()[p];
    }
    sound &= previous < n_features;
  }
  return sound;
}

Array1<float> text_rows(Indptr indptr, Ids indices, Values data, Values weights) {
  const auto nnz = static_cast<int64_t>(data.shape(0)), n_weights = static_cast<int64_t>(weights.shape(0));
  require(static_cast<int64_t>(indices.shape(0)) == nnz, "X.indices and X.data must have the same length");
  require_indptr(indptr, nnz, "X.indptr");
  std::vector<float> out(data.shape(0));
  std::vector<double> row;
  for (size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    const int64_t first = indptr.data()[i], last = indptr.data()[i + 1];
    row.assign(data.data() + first, data.data() + last);
    double sum = 0.0;
    for (int64_t p = first; p < last; ++p) {
      double& v = row[p - first];
      if (n_weights > 0) {
        const int32_t f = indices.data()[p];
        require(f >= 0 && f < n_weights, "X.indices must be below the number of weights");
        v = v > 0.0 ? (1.0 + elementary::log(v)) * weights.data()[f] : 0.0;
      }
      sum += v * v;
    }
    const double length = sum > 0.0 ? std::sqrt(sum) : 1.0;
    for (int64_t p = first; p < last; ++p) out[p] = static_cast<float>(row[p - first] / length);
  }
  return to_array(std::move(out));
}

template <typename T>
void sparse_gram(const CsrView& rows, Out2<T> out, int n_threads) {
  const SparseRows X = require_csr(rows);
  const int64_t n = X.n_rows;
  require(static_cast<int64_t>(out.shape(0)) == n && static_cast<int64_t>(out.shape(1)) == n,
          "out must be a square matrix with a row for each row of X");
  constexpr int64_t kBlock = 16;  // rows a task fills
  T* K = out.data();

  // Columns of features that every other row holds: no more memory, in all, than twice the stored values.
  const Postings postings(X, rows.n_columns, 2);
  std::vector<std::vector<double>> sums(static_cast<size_t>(std::max(1, n_threads)));
  // The long rows of the triangle first, so that no thread is left with them at the end.
  parallel_for(n, n_threads, kBlock, [&](int64_t begin, int64_t end, int worker) {
    auto& sum = sums[worker];
    for (int64_t reversed = begin; reversed < end; ++reversed) {
      const int64_t i = n - 1 - reversed;
      sum.assign(static_cast<size_t>(i) + 1, 0.0);
      for (int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p)
        postings.add<double>(X.indices[p], X.data[p], i + 1, sum.data());
      std::copy(sum.begin(), sum.end(), K + i * n);
    }
  });
  constexpr int64_t kTile = 64;
  parallel_for((n + kTile - 1) / kTile, n_threads, 1, [&](int64_t tile, int64_t, int) {
    const int64_t top = tile * kTile, bottom = std::min(n, top + kTile);
    for (int64_t left = top; left < n; left += kTile)
      for (int64_t i = top; i < bottom; ++i)
        for (int64_t j = std::max(left, i + 1); j < std::min(n, left + kTile); ++j) K[i * n + j] = K[j * n + i];
  });
}

template void sparse_gram(const CsrView&, Out2<float>, int);
template void sparse_gram(const CsrView&, Out2<double>, int);

Array1<int32_t> fold_of_rows(int64_t n, int32_t n_folds, uint64_t seed) {
  require(n >= 0, "n must be non-negative");
  require(n_folds >= 1, "n_folds must be positive");
  std::vector<int32_t> fold(static_cast<size_t>(n));
  for (int64_t i = 0; i < n; ++i)
    fold[i] = static_cast<int32_t>(hash_pair(seed, static_cast<uint64_t>(i)) % static_cast<uint64_t>(n_folds));
  return to_array(std::move(fold));
}

template <double (*function)(double)>
Array1<double> each(In1<double> x) {
  std::vector<double> out(x.shape(0));
  for (size_t i = 0; i < out.size(); ++i) out[i] = function(x(i));
  return to_array(std::move(out));
}

template Array1<double> each<elementary::exp>(In1<double>);
template Array1<double> each<elementary::exp2>(In1<double>);
template Array1<double> each<elementary::log>(In1<double>);
template Array1<double> each<elementary::log1p>(In1<double>);
template Array1<double> each<elementary::log2>(In1<double>);
template Array1<double> each<elementary::logistic>(In1<double>);
template Array1<double> each<elementary::softplus>(In1<double>);
template Array1<double> each<elementary::log_odds>(In1<double>);

}  // namespace metarank
