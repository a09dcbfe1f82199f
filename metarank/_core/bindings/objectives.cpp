// Losses of ranked lists and their gradients, and the linear rankers' scores of pairs.
#include <nanobind/stl/string.h>

#include "../linear_scores.h"
#include "../list_losses.h"
#include "bindings.h"

namespace metarank::bindings {

void bind_objectives(nb::module_& m) {
  bind(m, "list_loss", &list_loss, {"name", "scores", "gains", "indptr", "weights", "n_threads"});
  bind(m, "auc_gradients", &auc_gradients,
       {"scores", "target", "order", "indptr", "costs", "surrogate", "difference", "with_loss", "n_threads"});
  bind(m, "ideal_dcg", &ideal_dcg, {"gains", "indptr", "truncation", "n_threads"});
  bind(m, "lambda_gradients", &lambda_gradients,
       {"scores", "rank_by", "gains", "ideal", "order", "indptr", "sigmoid", "truncation", "norm", "with_loss",
        "n_threads"});
  bind(m, "list_ndcg", &list_ndcg, {"scores", "gains", "ideal", "order", "indptr", "truncation", "n_threads"});
  bind(m, "linear_scores", &linear_scores, {"values", "mean", "weights", "bias", "n_threads"});
  bind(m, "label_linear_scores", &label_linear_scores, {"values", "labels", "mean", "weights", "bias", "n_threads"});
  bind(m, "linear_gradient", &linear_gradient, {"values", "mean", "g", "n_threads"});
  bind(m, "list_quality", &list_quality, {"scores", "gains", "indptr", "n_threads"});
}

}  // namespace metarank::bindings
