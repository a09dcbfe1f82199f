// The plan of a fitted model, and its sources.
#include "../plan.h"

#include "bindings.h"

namespace metarank::bindings {

namespace {

// A class of its own for each kind of source.
template <auto make>
struct Made : PlanSource {};

template <auto make, size_t... Held, typename... Args, size_t N>
void bind_made(nb::module_& m, const char* name, const char* doc, PlanSource (*)(Args...), Names (&names)[N]) {
  nb::class_<Made<make>, PlanSource> source(m, name, doc);
  bind_borrower<Held...>(
      source,
      [](Made<make>* self, Args... args) { new (self) Made<make>{PlanSource(make(std::forward<Args>(args)...))}; }, names);
}

// `Held`: what the source reads on in, of its arguments, the first of which is 2.
template <auto make, size_t... Held, size_t N>
void bind_source(nb::module_& m, const char* name, const char* doc, Names (&names)[N]) {
  bind_made<make, Held...>(m, name, doc, make, names);
}

void bind_sources(nb::module_& m) {
  nb::class_<PlanSource>(m, "PlanSource", "A source of a Plan, over the objects it is made of.");
  bind_source<plan_neighbors, 2, 3, 4>(m, "PlanNeighbors", "Distances to a label's nearest points.",
                                       {"index", "label_indptr", "label_rows", "columns"});
  bind_source<plan_dense_neighbors, 2, 3, 4>(m, "PlanDenseNeighbors", "Distances to a label's nearest dense points.",
                                             {"points", "label_indptr", "label_rows", "columns"});
  bind_source<plan_means, 2>(m, "PlanMeans", "Distances to the mean of a label's points.", {"index"});
  bind_source<plan_dense_means, 2, 3>(m, "PlanDenseMeans", "Distances to the dense mean of a label's points.",
                                      {"means", "known", "max_sq_norm"});
  bind_source<plan_constants, 2>(m, "PlanConstants", "A number a label.", {"values"});
  bind_source<plan_votes, 2, 3, 4>(m, "PlanVotes", "Votes of the nearest rows.",
                                   {"index", "voters", "votes", "ks", "by_name", "tie"});
  bind_source<plan_dense_votes, 2, 3, 4, 5>(m, "PlanDenseVotes", "Votes of the nearest dense rows.",
                                            {"X", "sq_norm", "voters", "votes", "ks", "by_name", "tie"});
  bind_source<plan_label_vectors, 2, 3>(m, "PlanLabelVectors", "Products with vectors of labels.",
                                        {"vectors", "matrix"});
  bind_source<plan_weights<int16_t>, 2, 3>(m, "PlanQuantisedWeights", "Linear classifiers, as a source of a Plan.",
                                                {"scorer", "lister", "n_listed"});
  bind_source<plan_weights<float>, 2, 3>(m, "PlanExactWeights", "Linear classifiers, as a source of a Plan.",
                                         {"scorer", "lister", "n_listed"});
  bind_source<plan_dense_weights, 2, 3>(m, "PlanDenseWeights", "Classifiers of dense rows.", {"index", "listed"});
  bind_source<plan_trees, 2>(m, "PlanTrees", "Label trees.", {"trees", "beam", "least_proposed", "scale", "least"});
  bind_source<plan_names, 2>(m, "PlanNames", "Texts of labels.", {"text", "columns"});
  bind_source<plan_name_record, 2, 3, 4, 5>(m, "PlanNameRecord", "What rows tell of the names of labels.",
                                            {"text", "present", "absent", "of_labels"});
  bind_source<plan_mentions, 2, 3>(m, "PlanMentions", "Where texts mention the names of labels.", {"names", "rarity"});
}

}  // namespace

void bind_plan(nb::module_& m) {
  bind_sources(m);
  bind_options(m, "PlanStages", Field{"proposes", &PlanStages::proposes}, Field{"describes", &PlanStages::describes},
               Field{"own", &PlanStages::own}, Field{"standardize", &PlanStages::standardize},
               Field{"survivors", &PlanStages::survivors}, Field{"absent", &PlanStages::absent},
               Field{"gap", &PlanStages::gap});
  nb::class_<Plan> plan(m, "Plan", "A fitted model's way from sparse rows to scored lists.");
  plan.def(
      "__init__",
      [](Plan* self, const std::vector<const PlanSource*>& sources, const Plan::Blocks& blocks,
         const PlanStages& stages, const BoostedTrees* cascade, Values rarity,
         const BoostedTrees* ranker) { new (self) Plan(sources, blocks, stages, cascade, rarity, ranker); },
      nb::arg("sources"), nb::arg("blocks"), nb::arg("stages"), nb::arg("cascade").none(), nb::arg("rarity"),
      nb::arg("ranker").none(),
      nb::keep_alive<1, 2>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>(), nb::keep_alive<1, 7>());
  bind(
      plan, "answer",
      [](const Plan& self, CsrView X, Indptr word_indptr, In1<int64_t> words, int64_t k, bool table,
         int n_threads) { return self.answer({X, word_indptr, words, {}}, k, table, n_threads); },
      {"X", "word_indptr", "words", "k", "table", "n_threads"},
      "(indptr, labels, rough, ahead, table, evidence): the table of the pairs ahead, or the evidence of all.");
}

}  // namespace metarank::bindings
