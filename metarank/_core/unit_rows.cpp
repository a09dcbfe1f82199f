// Rows of a CSR matrix scaled to unit length.
#include <cmath>

#include "bindings.h"

namespace metarank {

namespace {

// The values of each row divided by its length, summed in double in the order stored; zero rows stay.
Array1<float> unit_rows(const In1<std::int64_t>& indptr, const In1<float>& data) {
  require_indptr(indptr, static_cast<std::int64_t>(data.shape(0)), "X.indptr");
  std::vector<float> out(data.shape(0));
  {
    nb::gil_scoped_release release;
    const float* x = data.data();
    for (std::size_t i = 0; i + 1 < indptr.shape(0); ++i) {
      double sum = 0.0;
      for (std::int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p) sum += static_cast<double>(x[p]) * static_cast<double>(x[p]);
      const double inverse = sum > 0.0 ? 1.0 / std::sqrt(sum) : 0.0;
      for (std::int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p)
        out[static_cast<std::size_t>(p)] = static_cast<float>(static_cast<double>(x[p]) * inverse);
    }
  }
  return to_numpy(std::move(out));
}

}  // namespace

void bind_unit_rows(nb::module_& m) {
  m.def("unit_rows", &unit_rows, nb::arg("indptr").noconvert(), nb::arg("data").noconvert());
}

}  // namespace metarank
