// What the metrics ask of scores.
#include "../metrics.h"

#include "../regression_errors.h"
#include "../topk.h"
#include "bindings.h"

namespace metarank::bindings {

namespace {

template <typename T>
void bind_type(nb::module_& m) {
  Names dense[] = {"y_indptr", "y_labels", "y_values", "scores", "k", "n_threads"};
  Names listed[] = {"y_indptr", "y_labels", "y_values", "indptr", "labels", "scores", "k", "n_threads"};
  bind(m, "standing_dense", &standing_dense<T>, {"y_indptr", "y_labels", "scores", "n_threads"});
  bind(m, "standing_listed", &standing_listed<T>,
       {"y_indptr", "y_labels", "indptr", "labels", "scores", "n_labels", "n_threads"});
  bind(m, "largest_errors_dense", &largest_errors_dense<T>, dense);
  bind(m, "largest_errors_listed", &largest_errors_listed<T>, listed);
  bind(m, "predicted_errors_dense", &predicted_errors_dense<T>, dense);
  bind(m, "predicted_errors_listed", &predicted_errors_listed<T>, listed);
  bind(m, "top_k_dense", &top_k_dense<T>, {"scores", "k", "n_threads"});
  bind(m, "top_k_listed", &top_k_listed<T>, {"indptr", "labels", "scores", "k", "n_threads"});
}

}  // namespace

void bind_metrics(nb::module_& m) {
  bind(m, "descending_rows", &descending_rows, {"indptr", "values"});
  bind_type<float>(m);
  bind_type<double>(m);
}

}  // namespace metarank::bindings
