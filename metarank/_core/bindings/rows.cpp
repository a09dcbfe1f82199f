// Rows of a matrix and plain arrays: checks, scaling, elementary functions, products of rows, folds.
#include <nanobind/stl/string.h>

#include "../dense_algebra.h"
#include "../elementary_arrays.h"
#include "../gram.h"
#include "../hashing.h"
#include "../kernel_machine.h"
#include "../text_parse.h"
#include "../unit_rows.h"
#include "bindings.h"

namespace metarank::bindings {

void bind_rows(nb::module_& m) {
  bind(m, "exp", &elementary::exp_of, {"x"});
  bind(m, "exp2", &elementary::exp2_of, {"x"});
  bind(m, "log", &elementary::log_of, {"x"});
  bind(m, "log1p", &elementary::log1p_of, {"x"});
  bind(m, "log2", &elementary::log2_of, {"x"});
  bind(m, "logistic", &elementary::logistic_of, {"x"});
  bind(m, "softplus", &elementary::softplus_of, {"x"});
  bind(m, "log_odds", &elementary::log_odds_of, {"x"});
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
  bind(m, "format_rows", &format_rows,
       {"indptr", "ids", "values", "label_indptr", "label_ids", "grades", "graded"});
  bind(m, "is_canonical", &is_canonical, {"indptr", "indices", "data", "n_features"});
  bind(m, "text_rows", &text_rows, {"indptr", "indices", "data", "weights"});
  bind(m, "unit_rows", &unit_rows, {"indptr", "data"});
  bind(m, "kernel_matrix", &kernel_matrix, {"A", "B", "metric", "gamma", "n_threads"});
  bind(m, "kernel_machine", &kernel_machine,
       {"X", "support", "dual", "bias", "metric", "gamma", "indptr", "labels", "n_threads"});
  bind(m, "sparse_gram", &sparse_gram<float>, {"n_features", "indptr", "indices", "data", "out", "n_threads"});
  bind(m, "sparse_gram", &sparse_gram<double>, {"n_features", "indptr", "indices", "data", "out", "n_threads"});
}

}  // namespace metarank::bindings
