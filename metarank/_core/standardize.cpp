#include "standardize.h"

#include <cmath>

#include "arrays.h"
#include "parallel.h"
#include "simd.h"

namespace metarank {

namespace {

// One list of `count` rows of F finite values, to rows `stride` apart; sums run down the list, in double.
METARANK_KERNEL void standardize_list(const float* values, std::int64_t count, std::int64_t F, double* mean,
                                      double* scale, float* out, std::int64_t stride) {
  for (std::int64_t f = 0; f < F; ++f) mean[f] = scale[f] = 0.0;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t f = 0; f < F; ++f) mean[f] += values[i * F + f];
  for (std::int64_t f = 0; f < F; ++f) mean[f] /= static_cast<double>(count);
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t f = 0; f < F; ++f) {
      const double t = values[i * F + f] - mean[f];
      scale[f] += t * t;
    }
  // Equal floats have an exact sum in double, hence an exact mean and a deviation of exactly 0.
  for (std::int64_t f = 0; f < F; ++f)
    scale[f] = scale[f] > 0.0 ? 1.0 / std::sqrt(scale[f] / static_cast<double>(count)) : 0.0;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t f = 0; f < F; ++f)
      out[i * stride + f] = static_cast<float>((values[i * F + f] - mean[f]) * scale[f]);
}

bool all_finite(const float* values, std::size_t n) {
  bool finite = true;
  for (std::size_t i = 0; i < n; ++i) finite &= std::isfinite(values[i]);
  return finite;
}

}  // namespace

Array2<float> feature_table(const std::vector<In1<float>>& columns, In1<std::int64_t> indptr,
                            const std::vector<std::int64_t>& own, bool standardize, int n_threads) {
  require(!columns.empty(), "columns must not be empty");
  const auto m = static_cast<std::int64_t>(columns[0].shape(0)), F = static_cast<std::int64_t>(columns.size());
  for (const auto& column : columns) {
    require(static_cast<std::int64_t>(column.shape(0)) == m, "columns must have the same length");
    require(all_finite(column.data(), column.shape(0)), "columns must be finite");
  }
  for (const std::int64_t f : own) require(f >= 0 && f < F, "own must be numbers of columns");
  require_indptr(indptr, m, "indptr");
  const auto n_own = static_cast<std::int64_t>(own.size()), width = n_own + (standardize ? F : 0);
  std::vector<float> out(static_cast<std::size_t>(m * width));
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  parallel_for(n, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<double> mean(static_cast<std::size_t>(F)), scale(static_cast<std::size_t>(F));
    std::vector<float> list;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = indptr.data()[i], count = indptr.data()[i + 1] - first;
      list.resize(static_cast<std::size_t>(count * F));
      for (std::int64_t f = 0; f < F; ++f) {
        const float* column = columns[static_cast<std::size_t>(f)].data() + first;
        for (std::int64_t j = 0; j < count; ++j) list[static_cast<std::size_t>(j * F + f)] = column[j];
      }
      float* rows = out.data() + first * width;
      for (std::int64_t j = 0; j < count; ++j)
        for (std::int64_t f = 0; f < n_own; ++f)
          rows[j * width + f] = list[static_cast<std::size_t>(j * F + own[static_cast<std::size_t>(f)])];
      if (standardize && count > 0)
        by_level<standardize_list>(list.data(), count, F, mean.data(), scale.data(), rows + n_own, width);
    }
  });
  return to_array(std::move(out), static_cast<std::size_t>(m), static_cast<std::size_t>(width));
}

}  // namespace metarank
