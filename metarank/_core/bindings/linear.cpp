// Linear classifiers: training, scores, look-up by feature.
#include "../linear_predict.h"
#include "../linear_train.h"
#include "../one_vs_all.h"
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
      [](Index* self, std::int64_t n_features, In1<std::int64_t> start, In1<std::uint16_t> label, In1<Weight> weight,
         In1<float> scale, In1<float> bias) { new (self) Index(n_features, start, label, weight, scale, bias); },
      {"n_features", "start", "label", "weight", "scale", "bias"});
  bind(index, "scores", &Index::scores, {"x_indptr", "x_indices", "x_data", "indptr", "labels", "n_threads"});
  bind(index, "shortlist", &Index::shortlist, {"x_indptr", "x_indices", "x_data", "k", "n_threads"});
  bind(index, "sums", &Index::sums, {"x_indptr", "x_indices", "x_data", "n_threads"});
  bind(index, "scores_of", &Index::scores_of, {"sums", "indptr", "labels"});
  bind(index, "shortlist_of", &Index::shortlist_of, {"sums", "k"});
}

}  // namespace

void bind_linear(nb::module_& m) {
  bind(m, "train_svm_dense", &train_svm_dense,
       {"X", "label_indptr", "label_rows", "C", "tolerance", "max_epochs", "seed", "n_threads"});
  bind(m, "train_svm_sparse", &train_svm_sparse,
       {"x_indptr", "x_indices", "x_data", "n_features", "label_indptr", "label_rows", "C", "tolerance", "max_epochs",
        "seed", "n_threads"});
  using Options = SquaredHingeOptions;
  bind_options(m, "SquaredHingeOptions", Field{"C", &Options::C}, Field{"tolerance", &Options::tolerance},
               Field{"least", &Options::least}, Field{"max_epochs", &Options::max_epochs},
               Field{"seed", &Options::seed});
  bind(m, "train_squared_hinge", &train_squared_hinge,
       {"X", "label_indptr", "label_rows", "positive_cost", "order", "factor", "options", "n_threads"});
  bind(m, "linear_scores_dense", &linear_scores_dense, {"X", "W", "bias", "indptr", "labels", "n_threads"});
  bind(m, "linear_scores_sparse", &linear_scores_sparse,
       {"x_indptr", "x_indices", "x_data", "n_features", "W", "bias", "indptr", "labels", "n_threads"});
  bind_weight_index<std::int16_t>(m, "QuantisedWeightIndex");
  bind_weight_index<float>(m, "ExactWeightIndex");
}

}  // namespace metarank::bindings
