// What the metrics ask of scores.
#include "../metrics.h"

#include "../topk.h"
#include "bindings.h"

namespace metarank::bindings {

namespace {

template <typename T>
void bind_type(nb::module_& m) {
  bind(m, "standing_listed", &standing_listed<T>,
       {"y_indptr", "y_labels", "indptr", "labels", "scores", "n_labels", "n_threads"});
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
