// z-scores of each column within each row's candidate list.
#include <cmath>

#include "bindings.h"
#include "simd.h"

namespace metarank {

namespace {

// One list of `count` rows of F values; sums run down the list, in double. Returns false if a value is not finite.
METARANK_DISPATCH bool standardize_list(const float* values, std::int64_t count, std::int64_t F, double* mean,
                                        double* scale, float* out) {
  for (std::int64_t f = 0; f < F; ++f) mean[f] = scale[f] = 0.0;
  for (std::int64_t i = 0; i < count; ++i)
    for (std::int64_t f = 0; f < F; ++f) mean[f] += values[i * F + f];
  for (std::int64_t f = 0; f < F; ++f) {
    if (!std::isfinite(mean[f])) return false;
    mean[f] /= static_cast<double>(count);
  }
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
      out[i * F + f] = static_cast<float>((values[i * F + f] - mean[f]) * scale[f]);
  return true;
}

Array2<float> standardize_within_lists(In2<float> values, In1<std::int64_t> indptr, int n_threads) {
  const auto m = static_cast<std::int64_t>(values.shape(0)), F = static_cast<std::int64_t>(values.shape(1));
  require(indptr.shape(0) >= 1, "indptr must not be empty");
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  require(indptr.data()[0] == 0 && indptr.data()[n] == m, "indptr must start at 0 and end at the number of pairs");
  for (std::int64_t i = 0; i < n; ++i) require(indptr.data()[i] <= indptr.data()[i + 1], "indptr must not decrease");
  std::vector<float> out(static_cast<std::size_t>(m * F));
  {
    nb::gil_scoped_release release;
    parallel_for(n, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
      std::vector<double> mean(static_cast<std::size_t>(F)), scale(static_cast<std::size_t>(F));
      for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t first = indptr.data()[i], count = indptr.data()[i + 1] - first;
        if (count > 0)
          require(standardize_list(values.data() + first * F, count, F, mean.data(), scale.data(),
                                   out.data() + first * F),
                  "values must be finite");
      }
    });
  }
  return to_numpy(std::move(out), static_cast<std::size_t>(m), static_cast<std::size_t>(F));
}

}  // namespace

void bind_standardize(nb::module_& m) {
  m.def("standardize_within_lists", &standardize_within_lists, nb::arg("values").noconvert(),
        nb::arg("indptr").noconvert(), nb::arg("n_threads"));
}

}  // namespace metarank
