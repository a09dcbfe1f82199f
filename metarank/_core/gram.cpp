#include "gram.h"

#include <algorithm>

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlock = 16;  // rows a task fills

METARANK_KERNEL void add_column(double v, const float* column, std::int64_t n, double* sum) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += v * column[i];
}

// For each feature the rows that hold it, ascending; of a feature that every other row holds, the values of all
// rows, which take less time than its postings and, in all, no more memory than twice the stored values.
struct Postings {
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> row;
  std::vector<float> value;
  std::vector<std::int64_t> column;  // by feature: where its column starts, -1 without one
  std::vector<float> columns;

  Postings(const SparseRows& X, std::int64_t n_rows, std::int64_t n_features)
      : start(static_cast<std::size_t>(n_features) + 1) {
    const std::int64_t nnz = X.indptr[n_rows];
    row.resize(static_cast<std::size_t>(nnz));
    value.resize(static_cast<std::size_t>(nnz));
    for (std::int64_t p = 0; p < nnz; ++p) ++start[static_cast<std::size_t>(X.indices[p]) + 1];
    for (std::size_t f = 1; f < start.size(); ++f) start[f] += start[f - 1];
    column.assign(static_cast<std::size_t>(n_features), -1);
    std::int64_t size = 0;
    for (std::size_t f = 0; f < column.size(); ++f)
      if (2 * (start[f + 1] - start[f]) >= n_rows) {
        column[f] = size;
        size += n_rows;
      }
    columns.assign(static_cast<std::size_t>(size), 0.0f);
    std::vector<std::int64_t> next(start.begin(), start.end() - 1);
    for (std::int64_t i = 0; i < n_rows; ++i)
      for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
        const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(X.indices[p])]++);
        row[at] = static_cast<std::int32_t>(i);
        value[at] = X.data[p];
        const std::int64_t c = column[static_cast<std::size_t>(X.indices[p])];
        if (c >= 0) columns[static_cast<std::size_t>(c + i)] = X.data[p];
      }
  }
};

}  // namespace

template <typename T>
void sparse_gram(std::int64_t n_features, In1<std::int64_t> indptr, In1<std::int32_t> indices, In1<float> data,
                 Out2<T> out, int n_threads) {
  require(n_features >= 0, "n_features must not be negative");
  const SparseRows X = require_csr(indptr, indices, data, n_features);
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  require(static_cast<std::int64_t>(out.shape(0)) == n && static_cast<std::int64_t>(out.shape(1)) == n,
          "out must be a square matrix with a row for each row of X");
  T* K = out.data();

  const Postings postings(X, n, n_features);
  std::vector<std::vector<double>> sums(static_cast<std::size_t>(std::max(1, n_threads)));
  // The long rows of the triangle first, so that no thread is left with them at the end.
  parallel_for(n, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    auto& sum = sums[static_cast<std::size_t>(worker)];
    for (std::int64_t reversed = begin; reversed < end; ++reversed) {
      const std::int64_t i = n - 1 - reversed;
      sum.assign(static_cast<std::size_t>(i) + 1, 0.0);
      for (std::int64_t p = X.indptr[i]; p < X.indptr[i + 1]; ++p) {
        const auto f = static_cast<std::size_t>(X.indices[p]);
        const double x = X.data[p];
        if (postings.column[f] >= 0) {
          by_level<add_column>(x, postings.columns.data() + postings.column[f], i + 1, sum.data());
          continue;
        }
        const auto last = static_cast<std::size_t>(postings.start[f + 1]);
        for (auto q = static_cast<std::size_t>(postings.start[f]); q < last && postings.row[q] <= i; ++q)
          sum[static_cast<std::size_t>(postings.row[q])] += x * postings.value[q];
      }
      std::copy(sum.begin(), sum.end(), K + i * n);
    }
  });
  constexpr std::int64_t kTile = 64;
  parallel_for((n + kTile - 1) / kTile, n_threads, 1, [&](std::int64_t tile, std::int64_t, int) {
    const std::int64_t top = tile * kTile, bottom = std::min(n, top + kTile);
    for (std::int64_t left = top; left < n; left += kTile)
      for (std::int64_t i = top; i < bottom; ++i)
        for (std::int64_t j = std::max(left, i + 1); j < std::min(n, left + kTile); ++j) K[i * n + j] = K[j * n + i];
  });
}

template void sparse_gram(std::int64_t, In1<std::int64_t>, In1<std::int32_t>, In1<float>, Out2<float>, int);
template void sparse_gram(std::int64_t, In1<std::int64_t>, In1<std::int32_t>, In1<float>, Out2<double>, int);

}  // namespace metarank
