#include "elementary_arrays.h"

#include "elementary.h"

namespace metarank::elementary {

namespace {

template <double (*function)(double)>
Array1<double> each(In1<double> x) {
  std::vector<double> out(x.shape(0));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = function(x.data()[i]);
  return to_array(std::move(out));
}

}  // namespace

Array1<double> exp_of(In1<double> x) { return each<exp>(x); }
Array1<double> exp2_of(In1<double> x) { return each<exp2>(x); }
Array1<double> log_of(In1<double> x) { return each<log>(x); }
Array1<double> log1p_of(In1<double> x) { return each<log1p>(x); }
Array1<double> log2_of(In1<double> x) { return each<log2>(x); }
Array1<double> logistic_of(In1<double> x) { return each<logistic>(x); }
Array1<double> softplus_of(In1<double> x) { return each<softplus>(x); }
Array1<double> log_odds_of(In1<double> x) { return each<log_odds>(x); }

}  // namespace metarank::elementary
