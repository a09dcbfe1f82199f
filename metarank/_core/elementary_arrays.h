// The functions of elementary.h, on arrays.
#pragma once

#include "arrays.h"

namespace metarank::elementary {

Array1<double> exp_of(In1<double> x);
Array1<double> exp2_of(In1<double> x);
Array1<double> log_of(In1<double> x);
Array1<double> log1p_of(In1<double> x);
Array1<double> log2_of(In1<double> x);
Array1<double> logistic_of(In1<double> x);
Array1<double> softplus_of(In1<double> x);
Array1<double> log_odds_of(In1<double> x);

}  // namespace metarank::elementary
