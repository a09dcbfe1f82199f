// The functions of elementary.h, on arrays.
#include "elementary.h"

#include "bindings.h"

namespace metarank {

namespace {

template <double (*function)(double)>
Array1<double> each(In1<double> x) {
  std::vector<double> out(x.shape(0));
  {
    nb::gil_scoped_release release;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = function(x.data()[i]);
  }
  return to_numpy(std::move(out));
}

template <double (*function)(double)>
void bind(nb::module_& m, const char* name) {
  m.def(name, &each<function>, nb::arg("x").noconvert());
}

}  // namespace

void bind_elementary(nb::module_& m) {
  bind<elementary::exp>(m, "exp");
  bind<elementary::exp2>(m, "exp2");
  bind<elementary::log>(m, "log");
  bind<elementary::log1p>(m, "log1p");
  bind<elementary::log2>(m, "log2");
  bind<elementary::logistic>(m, "logistic");
  bind<elementary::softplus>(m, "softplus");
  bind<elementary::log_odds>(m, "log_odds");
}

}  // namespace metarank
