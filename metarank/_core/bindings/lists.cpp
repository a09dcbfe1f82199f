// Lists of scored labels: unions, tables of columns, cuts.
#include "../candidate_lists.h"
#include "../cuts.h"
#include "../label_logistic.h"
#include "../standardize.h"
#include "bindings.h"

namespace metarank::bindings {

namespace {

// A list's own references would end with its conversion: these are the arrays', for as long as the call.
template <typename T>
using Arrays = std::vector<nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>>;

template <typename T>
std::vector<In1<T>> views(const Arrays<T>& arrays) {
  std::vector<In1<T>> out;
  for (const auto& array : arrays) out.push_back(In1<T>(array.data(), {array.shape(0)}));
  return out;
}

}  // namespace

void bind_lists(nb::module_& m) {
  m.def(
      "unite_lists",
      [](const Arrays<std::int64_t>& indptr, const Arrays<std::int32_t>& labels) {
        return unite_lists(views<std::int64_t>(indptr), views<std::int32_t>(labels));
      },
      nb::arg("indptr").noconvert(), nb::arg("labels").noconvert(), Unlocked());
  m.def(
      "proposal_columns",
      [](const Arrays<std::int64_t>& part_indptr, const Arrays<std::int32_t>& part_labels,
         const Arrays<float>& part_scores, In1<std::int64_t> indptr, In1<std::int32_t> labels, In1<float> own,
         float absent, int n_threads) {
        return proposal_columns(views<std::int64_t>(part_indptr), views<std::int32_t>(part_labels),
                                views<float>(part_scores), indptr, labels, own, absent, n_threads);
      },
      nb::arg("part_indptr").noconvert(), nb::arg("part_labels").noconvert(), nb::arg("part_scores").noconvert(),
      nb::arg("indptr"), nb::arg("labels"), nb::arg("own"), nb::arg("absent"), nb::arg("n_threads"), Unlocked());
  bind(m, "foremost", &foremost, {"scores", "indptr", "k"});
  bind(m, "with_pairs_behind", &with_pairs_behind, {"evidence", "rough", "ahead", "indptr", "gap"});
  m.def(
      "feature_table",
      [](const Arrays<float>& columns, In1<std::int64_t> indptr, const std::vector<std::int64_t>& own,
         bool standardize, int n_threads) {
        return feature_table(views<float>(columns), indptr, own, standardize, n_threads);
      },
      nb::arg("columns").noconvert(), nb::arg("indptr"), nb::arg("own"), nb::arg("standardize"), nb::arg("n_threads"),
      Unlocked());
  bind(m, "list_ranks", &list_ranks, {"scores", "indptr"});
  bind(m, "list_context", &list_context, {"scores", "indptr"});
  bind(m, "label_logistic_scores", &label_logistic_scores, {"X", "index", "shared", "by_label"});
  bind(m, "fit_label_logistic", &fit_label_logistic,
       {"X", "index", "target", "weight", "shared", "by_label", "ridge", "label_ridge"});
  bind(m, "expected_f1_sizes", &expected_f1_sizes,
       {"probabilities", "indptr", "unseen", "max_size", "allow_empty"});
}

}  // namespace metarank::bindings
