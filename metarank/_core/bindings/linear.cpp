// Linear classifiers: training, scores, look-up by feature.
#include "../linear_scores.h"
#include "../one_vs_all.h"
#include "../two_sided.h"
#include "../weight_index.h"
#include "bindings.h"

namespace metarank::bindings {

namespace {

template <typename Weight>
void bind_weight_index(nb::module_& m, const char* name) {
  using Index = WeightIndex<Weight>;
  nb::class_<Index> index(m, name, "Weights of linear classifiers by feature.");
  bind_borrower<3, 4, 5, 6, 7>(
      index,
      [](Index* self, int64_t n_features, Indptr start, In1<uint16_t> label, In1<Weight> weight, Values scale,
         Values bias) { new (self) Index(n_features, start, label, weight, scale, bias); },
      {"n_features", "start", "label", "weight", "scale", "bias"});
  bind(index, "scores", &Index::scores, {"X", "indptr", "labels", "n_threads"});
  bind(index, "shortlist", &Index::shortlist, {"X", "k", "n_threads"});
}

}  // namespace

void bind_linear(nb::module_& m) {
  using Options = SquaredHingeOptions;
  bind_options(m, "SquaredHingeOptions", Field{"C", &Options::C}, Field{"tolerance", &Options::tolerance},
               Field{"least", &Options::least}, Field{"max_epochs", &Options::max_epochs},
               Field{"seed", &Options::seed});
  bind(m, "train_squared_hinge", &train_squared_hinge,
       {"X", "label_indptr", "label_rows", "positive_cost", "order", "factor", "options", "n_threads"});
  bind(m, "linear_scores_dense", &linear_scores_dense, {"X", "W", "bias", "indptr", "labels", "n_threads"});
  bind(m, "linear_scores_sparse", &linear_scores_sparse, {"X", "W", "bias", "indptr", "labels", "n_threads"});
  bind_options(m, "TwoSidedOptions", Field{"epochs", &TwoSidedOptions::epochs},
               Field{"batch", &TwoSidedOptions::batch}, Field{"n_drawn", &TwoSidedOptions::n_drawn},
               Field{"matrix_rate", &TwoSidedOptions::matrix_rate}, Field{"offset_rate", &TwoSidedOptions::offset_rate},
               Field{"scale", &TwoSidedOptions::scale}, Field{"seed", &TwoSidedOptions::seed});
  bind(m, "train_two_sided", &train_two_sided,
       {"rows", "labels", "indptr", "relevant", "hard", "cumulated", "options", "n_threads"});
  bind_weight_index<int16_t>(m, "QuantisedWeightIndex");
  bind_weight_index<float>(m, "ExactWeightIndex");
}

}  // namespace metarank::bindings
