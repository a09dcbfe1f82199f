#include "unit_rows.h"

#include <cmath>

#include "arrays.h"
#include "elementary.h"

namespace metarank {

Array1<float> unit_rows(const In1<std::int64_t>& indptr, const In1<float>& data) {
  require_indptr(indptr, static_cast<std::int64_t>(data.shape(0)), "X.indptr");
  std::vector<float> out(data.shape(0));
  const float* x = data.data();
  for (std::size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    double sum = 0.0;
    for (std::int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p) sum += static_cast<double>(x[p]) * static_cast<double>(x[p]);
    const double inverse = sum > 0.0 ? 1.0 / std::sqrt(sum) : 0.0;
    for (std::int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p)
      out[static_cast<std::size_t>(p)] = static_cast<float>(static_cast<double>(x[p]) * inverse);
  }
  return to_array(std::move(out));
}

bool is_canonical(const In1<std::int32_t>& indptr, const In1<std::int32_t>& indices, const In1<float>& data,
                  std::int64_t n_features) {
  const std::size_t nnz = data.shape(0);
  if (indptr.shape(0) == 0 || indices.shape(0) != nnz || indptr.data()[0] != 0 ||
      indptr.data()[indptr.shape(0) - 1] != static_cast<std::int64_t>(nnz))
    return false;
  bool sound = true;
  for (std::size_t p = 0; p < nnz; ++p) sound &= std::isfinite(data.data()[p]) && data.data()[p] != 0.0f;
  for (std::size_t i = 0; i + 1 < indptr.shape(0) && sound; ++i) {
    const std::int64_t first = indptr.data()[i], last = indptr.data()[i + 1];
    if (first > last || last > static_cast<std::int64_t>(nnz)) return false;
    std::int32_t previous = -1;
    for (std::int64_t p = first; p < last; ++p) {
      sound &= indices.data()[p] > previous;
      previous = indices.data()[p];
    }
    sound &= previous < n_features;
  }
  return sound;
}

Array1<float> text_rows(const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices, const In1<float>& data,
                        const In1<float>& weights) {
  const auto nnz = static_cast<std::int64_t>(data.shape(0)), n_weights = static_cast<std::int64_t>(weights.shape(0));
  require(static_cast<std::int64_t>(indices.shape(0)) == nnz, "X.indices and X.data must have the same length");
  require_indptr(indptr, nnz, "X.indptr");
  std::vector<float> out(data.shape(0));
  std::vector<double> row;
  for (std::size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    const std::int64_t first = indptr.data()[i], last = indptr.data()[i + 1];
    row.assign(data.data() + first, data.data() + last);
    double sum = 0.0;
    for (std::int64_t p = first; p < last; ++p) {
      double& v = row[static_cast<std::size_t>(p - first)];
      if (n_weights > 0) {
        const std::int32_t f = indices.data()[p];
        require(f >= 0 && f < n_weights, "X.indices must be below the number of weights");
        v = v > 0.0 ? (1.0 + elementary::log(v)) * weights.data()[f] : 0.0;
      }
      sum += v * v;
    }
    const double length = sum > 0.0 ? std::sqrt(sum) : 1.0;
    for (std::int64_t p = first; p < last; ++p)
      out[static_cast<std::size_t>(p)] = static_cast<float>(row[static_cast<std::size_t>(p - first)] / length);
  }
  return to_array(std::move(out));
}

}  // namespace metarank
