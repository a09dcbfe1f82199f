// Rows of a matrix and plain arrays: checks, scaling, elementary functions, products of rows, folds.
#include <nanobind/stl/string.h>

#include "../rows.h"
#include "../dense_scores.h"
#include "../text_parse.h"
#include "bindings.h"

namespace metarank::bindings {

void bind_rows(nb::module_& m) {
  bind(m, "exp", &each<elementary::exp>, {"x"});
  bind(m, "exp2", &each<elementary::exp2>, {"x"});
  bind(m, "log", &each<elementary::log>, {"x"});
  bind(m, "log1p", &each<elementary::log1p>, {"x"});
  bind(m, "log2", &each<elementary::log2>, {"x"});
  bind(m, "logistic", &each<elementary::logistic>, {"x"});
  bind(m, "softplus", &each<elementary::softplus>, {"x"});
  bind(m, "log_odds", &each<elementary::log_odds>, {"x"});
  bind(m, "weighted_gram", &weighted_gram, {"A", "weight", "n_threads"});
  bind(m, "times", &times, {"A", "x"});
  bind(m, "transposed_times", &transposed_times, {"A", "v"});
  bind(m, "inner_product", &inner_product, {"a", "b"});
  bind(m, "upper_factor", &upper_factor, {"M"});
  bind(m, "solve_upper", &solve_upper, {"R", "b", "transposed"});
  bind(m, "fold_of_rows", &fold_of_rows, {"n", "n_folds", "seed"});
  bind(m, "parse_rows", &parse_rows,
       {"text", "n_features", "n_labels", "zero_based", "label_field", "label_first", "blank_rows", "first_line",
        "n_threads"});
  bind(m, "format_rows", &format_rows, {"indptr", "ids", "values", "label_indptr", "label_ids", "grades", "graded"});
  bind(m, "is_canonical", &is_canonical, {"indptr", "indices", "data", "n_features"});
  bind(m, "text_rows", &text_rows, {"indptr", "indices", "data", "weights"});
  bind(m, "unit_rows", &unit_rows, {"indptr", "data"});
  bind(m, "kernel_matrix", &kernel_matrix, {"A", "B", "metric", "gamma", "n_threads"});
  bind(m, "kernel_machine", &kernel_machine,
       {"X", "support", "dual", "bias", "metric", "gamma", "indptr", "labels", "n_threads"});
  bind(m, "sparse_gram", &sparse_gram<float>, {"X", "out", "n_threads"});
  bind(m, "sparse_gram", &sparse_gram<double>, {"X", "out", "n_threads"});
}

}  // namespace metarank::bindings
