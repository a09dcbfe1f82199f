// Neighbours and means: of labels, of rows, and their votes.
#include "../dense_scores.h"
#include "../label_mean_index.h"
#include "../neighbors.h"
#include "../votes.h"
#include "bindings.h"

namespace nanobind::detail {

// (pair_indptr, pair_labels, label_indptr, label_rows)
template <>
struct type_caster<metarank::LabelPairs>
    : struct_caster<metarank::LabelPairs, metarank::Indptr, metarank::Ids, metarank::Indptr, metarank::Ids> {};

// (rows, bounds)
template <>
struct type_caster<metarank::Proposals>
    : struct_caster<metarank::Proposals, metarank::In3<int32_t>, metarank::In2<double>> {};

// (X, label_indptr, label_rows)
template <>
struct type_caster<metarank::LabelPoints>
    : struct_caster<metarank::LabelPoints, metarank::CsrView, metarank::Indptr, metarank::Ids> {};

}  // namespace nanobind::detail

namespace metarank::bindings {

namespace {

void bind_neighbors_of_labels(nb::module_& m) {
  bind_options(m, "NeighborColumns", Field{"metrics", &NeighborColumns::metrics},
               Field{"orders", &NeighborColumns::orders}, Field{"means", &NeighborColumns::means});
  bind(m, "label_neighbors_sparse", &label_neighbors_sparse, {"index", "X", "pairs", "columns", "n_threads"});
  bind(m, "label_neighbors_dense", &label_neighbors_dense,
       {"points", "Q", "pairs", "columns", "proposals", "n_threads"});
  bind(m, "row_norms", &row_norms, {"X"});
}

void bind_nearest_rows(nb::module_& m) {
  bind(m, "nearest_rows_sparse",
       [](const InvertedIndex& index, CsrView X, Ids rows, int k, int metric, int n_threads) {
         return nearest_rows_sparse(index, X, {rows, index.n_rows()}, k, metric, n_threads);
       },
       {"index", "X", "rows", "k", "metric", "n_threads"});
  bind(m, "nearest_rows_dense", &nearest_rows_dense,
       {"X", "sq_norm", "Q", "rows", "k", "metric", "proposals", "bounds", "n_threads"});
  bind(m, "nearest_proposed_dense", &nearest_proposed_dense, {"X", "Q", "proposals", "k", "n_threads"});

  nb::class_<Votes> votes(m, "Votes", "The labels of the training rows as votes.");
  votes.def(
      "__init__",
      [](Votes* self, Indptr row_indptr, Ids row_labels, Ids popular, In1<double> frequency,
         std::optional<In1<double>> worth,
         std::optional<CsrView> text) { new (self) Votes(row_indptr, row_labels, popular, frequency, worth, text); },
      nb::arg("row_indptr"), nb::arg("row_labels"), nb::arg("popular"), nb::arg("frequency"),
      nb::arg("worth") = nb::none(), nb::arg("text") = nb::none(), Unlocked(), nb::keep_alive<1, 2>(),
      nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(),
      nb::keep_alive<1, 7>());
  bind(votes, "columns", &Votes::columns, {"rows", "weights", "pair_indptr", "pair_labels", "ks", "n_threads"});
  bind(votes, "shortlist", &Votes::shortlist, {"rows", "weights", "tie", "k", "n_threads"});
  bind(votes, "kin_by_name", &Votes::kin_by_name, {"rows", "weights", "pair_indptr", "pair_labels", "n_threads"});
}

void bind_means(nb::module_& m) {
  bind(m, "centroid_distances_dense", &centroid_distances_dense,
       {"centroids", "known", "max_sq_norm", "Q", "pair_indptr", "pair_labels", "n_threads"});
  nb::class_<LabelMeanIndex> index(m, "LabelMeanIndex",
                                   "Sparse means of labels, ready for products with rows (CSR arrays).");
  index.def(
      "__init__",
      [](LabelMeanIndex* self, CsrView means, In1<double> sq_norm, In1<uint8_t> known, double max_sq_norm,
         std::optional<LabelPoints> points) {
        new (self) LabelMeanIndex(means, sq_norm, known, max_sq_norm, points);
      },
      nb::arg("means"), nb::arg("sq_norm"), nb::arg("known"), nb::arg("max_sq_norm"), nb::arg("points") = nb::none(),
      Unlocked(), nb::keep_alive<1, 2>(), nb::keep_alive<1, 3>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 6>());
  bind(index, "distances", &distances, {"X", "pair_indptr", "pair_labels", "n_threads"},
       "L2 and cosine distance (2, pairs) of each pair's row to its label's mean.");
  bind(index, "tail_log_probability", &tail_log_probability,
       {"X", "pair_indptr", "pair_labels", "gamma", "unit_means", "n_threads"}, "log P_tail of each pair.");
  bind(index, "nearest", &nearest_means, {"X", "k", "gamma", "unit_means", "n_threads"},
       "(indptr, labels, log P_tail) of the k nearest means of each row.");
}

}  // namespace

void bind_neighbors(nb::module_& m) {
  nb::class_<InvertedIndex> index(m, "InvertedIndex", "Postings by feature of the rows of a canonical CSR matrix.");
  bind_borrower<2>(index, [](InvertedIndex* self, CsrView rows) { new (self) InvertedIndex(rows); }, {"rows"});
  index.def_prop_ro("n_rows", &InvertedIndex::n_rows)
      .def_prop_ro("n_features", &InvertedIndex::n_features)
      .def_prop_ro("max_sq_norm", &InvertedIndex::max_sq_norm)
      .def_prop_ro("max_l1_norm", &InvertedIndex::max_l1_norm);
  bind_neighbors_of_labels(m);
  bind_nearest_rows(m);
  bind_means(m);
}

}  // namespace metarank::bindings
