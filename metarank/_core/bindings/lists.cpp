// Lists of scored labels: unions, tables of columns, cuts.
#include "../candidate_lists.h"
#include "bindings.h"

namespace nanobind::detail {

// (indptr, labels, scores)
template <>
struct type_caster<metarank::ListView>
    : struct_caster<metarank::ListView, metarank::Indptr, metarank::Ids, metarank::Values> {};

}  // namespace nanobind::detail

namespace metarank::bindings {

void bind_lists(nb::module_& m) {
  bind(m, "unite_lists", &unite_lists, {"parts"});
  bind(m, "proposal_columns", &proposal_columns, {"parts", "indptr", "labels", "own", "absent", "n_threads"});
  bind(m, "foremost", &foremost, {"scores", "indptr", "k"});
  bind(m, "with_pairs_behind", &with_pairs_behind, {"evidence", "rough", "ahead", "indptr", "gap"});
  bind(m, "feature_table", &feature_table, {"columns", "indptr", "own", "standardize", "n_threads"});
  bind(m, "list_ranks", &list_ranks, {"scores", "indptr"});
  bind(m, "falling_logits", &falling_logits, {"logits", "scores", "indptr"});
  bind(m, "list_context", &list_context, {"scores", "indptr"});
  bind(m, "label_logistic_scores", &label_logistic_scores, {"X", "index", "shared", "by_label"});
  bind(m, "fit_label_logistic", &fit_label_logistic,
       {"X", "index", "target", "weight", "shared", "by_label", "ridge", "label_ridge"});
  bind(m, "expected_f1_sizes", &expected_f1_sizes, {"probabilities", "indptr", "unseen", "max_size", "allow_empty"});
}

}  // namespace metarank::bindings
