// The plan of a fitted model, and its sources.
#include "../plan.h"

#include <optional>
#include <string>

#include "bindings.h"

namespace metarank::bindings {

namespace {

using Indptr = In1<std::int64_t>;
using Ids = In1<std::int32_t>;
using Values = In1<float>;
// (indptr, labels, rough, ahead, table, evidence)
using AnswerTuple = std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<double>, Array1<std::uint8_t>,
                               Array2<float>, Array1<double>>;

template <typename Weight>
void bind_weights(nb::module_& m, const char* name) {
  using Source = PlanWeights<Weight>;
  nb::class_<Source, PlanSource> source(m, name, "Linear classifiers, as a source of a Plan.");
  bind_borrower<2, 3>(
      source,
      [](Source* self, const WeightIndex<Weight>& scorer, const WeightIndex<Weight>& lister, std::int64_t n_listed) {
        new (self) Source(scorer, lister, n_listed);
      },
      {"scorer", "lister", "n_listed"});
}

void bind_sources(nb::module_& m) {
  nb::class_<PlanSource>(m, "PlanSource", "A source of a Plan, over the objects it is made of.");
  nb::class_<PlanNeighbors, PlanSource> neighbors(m, "PlanNeighbors", "Distances to a label's nearest points.");
  bind_borrower<2, 3, 4>(
      neighbors,
      [](PlanNeighbors* self, const InvertedIndex& index, Indptr label_indptr, Ids label_rows,
         const NeighborColumns& columns) { new (self) PlanNeighbors(index, label_indptr, label_rows, columns); },
      {"index", "label_indptr", "label_rows", "columns"});
  nb::class_<PlanMeans, PlanSource> means(m, "PlanMeans", "Distances to the mean of a label's points.");
  bind_borrower<2>(
      means, [](PlanMeans* self, const LabelMeanIndex& index) { new (self) PlanMeans(index); }, {"index"});
  nb::class_<PlanConstants, PlanSource> constants(m, "PlanConstants", "A number a label.");
  bind_borrower<2>(
      constants, [](PlanConstants* self, Values values) { new (self) PlanConstants(values); }, {"values"});
  nb::class_<PlanVotes, PlanSource> votes(m, "PlanVotes", "Votes of the nearest rows.");
  bind_borrower<2, 3, 4>(
      votes,
      [](PlanVotes* self, const InvertedIndex& index, Ids voters, const Votes& of_rows, const std::vector<int>& ks,
         bool by_name, double tie) {
        require(!ks.empty(), "ks must not be empty");
        new (self) PlanVotes(index, voters, of_rows, ks, by_name, tie);
      },
      {"index", "voters", "votes", "ks", "by_name", "tie"});
  bind_weights<std::int16_t>(m, "PlanQuantisedWeights");
  bind_weights<float>(m, "PlanExactWeights");
  nb::class_<PlanTrees, PlanSource> trees(m, "PlanTrees", "Label trees.");
  bind_borrower<2>(
      trees,
      [](PlanTrees* self, const LabelTrees& of, std::int64_t beam, std::int64_t least_proposed, float scale,
         float least) { new (self) PlanTrees(of, beam, least_proposed, scale, least); },
      {"trees", "beam", "least_proposed", "scale", "least"});
  nb::class_<PlanNames, PlanSource> names(m, "PlanNames", "Texts of labels.");
  bind_borrower<2>(
      names,
      [](PlanNames* self, const LabelText& text, const std::vector<int>& columns) {
        for (const int j : columns) require(j >= 0 && j < 4, "columns must lie in [0, 4)");
        new (self) PlanNames(text, columns);
      },
      {"text", "columns"});
  nb::class_<PlanNameRecord, PlanSource> record(m, "PlanNameRecord", "What rows tell of the names of labels.");
  bind_borrower<2, 3, 4, 5>(
      record,
      [](PlanNameRecord* self, const LabelText& text, Values present, Values absent, In2<float> of_labels) {
        require(static_cast<std::int64_t>(of_labels.shape(1)) == text.n_labels(), "of_labels must have one column a label");
        new (self) PlanNameRecord(text, present, absent, of_labels);
      },
      {"text", "present", "absent", "of_labels"});
  nb::class_<PlanMentions, PlanSource> mentions(m, "PlanMentions", "Where texts mention the names of labels.");
  bind_borrower<2, 3>(
      mentions,
      [](PlanMentions* self, const NameMentions& names, Values rarity) {
        require(static_cast<std::int64_t>(rarity.shape(0)) == names.n_forms(), "rarity must be of all forms");
        new (self) PlanMentions(names, rarity);
      },
      {"names", "rarity"});
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
      [](Plan* self, const std::vector<const PlanSource*>& sources, const PlanStages& stages,
         const BoostedTrees* cascade, Values rarity,
         const BoostedTrees* ranker) { new (self) Plan(sources, stages, cascade, rarity, ranker); },
      nb::arg("sources"), nb::arg("stages"), nb::arg("cascade").none(), nb::arg("rarity"), nb::arg("ranker").none(),
      nb::keep_alive<1, 2>(), nb::keep_alive<1, 4>(), nb::keep_alive<1, 5>(), nb::keep_alive<1, 6>());
  bind(
      plan, "answer",
      [](const Plan& self, Indptr indptr, Ids indices, Values data, Indptr word_indptr, In1<std::int64_t> words,
         std::int64_t k, bool table, int n_threads) {
        Plan::Answer found = self.answer({indptr, indices, data, word_indptr, words}, k, table, n_threads);
        return AnswerTuple(std::move(found.indptr), std::move(found.labels), std::move(found.rough),
                           std::move(found.ahead), std::move(found.table), std::move(found.evidence));
      },
      {"x_indptr", "x_indices", "x_data", "word_indptr", "words", "k", "table", "n_threads"},
      "(indptr, labels, rough, ahead, table, evidence): the table of the pairs ahead, or the evidence of all.");
}

}  // namespace metarank::bindings
