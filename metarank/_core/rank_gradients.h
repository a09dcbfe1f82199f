// Losses of scored lists and their gradients in the scores.
//
// Every loss is a sum over lists of weight * loss(list). A list function
// writes the gradient of its own pairs and returns its value; the values are
// summed in the order of the lists, so that threads do not show.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// The loss of all lists, each times its weight, and its gradient.
using LossAndGradient = std::tuple<double, Array1<double>>;

LossAndGradient logistic_loss(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, In1<double> weights,
                              int n_threads);
LossAndGradient listnet_loss(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, In1<double> weights,
                             int n_threads);
LossAndGradient ranksvm_loss(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, In1<double> weights,
                             int n_threads);
LossAndGradient svmmap_loss(In1<double> scores, In1<float> gains, In1<std::int64_t> indptr, In1<double> weights,
                            int n_threads);

}  // namespace metarank
