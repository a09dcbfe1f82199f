// A fitted model's way from sparse rows to scored lists, stage by stage, without a stop between them:
// proposals, their union, the cascade, columns, the table of features, boosted trees.
//
// Rows are taken a part at a time, by several workers. The numbers are those of the kernels, which do not depend on
// the rows beside a row.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"
#include "boosted_trees.h"
#include "candidate_lists.h"
#include "inverted_index.h"
#include "label_mean_index.h"
#include "label_trees.h"
#include "mentions.h"
#include "names.h"
#include "neighbors.h"
#include "votes.h"
#include "weight_index.h"

namespace metarank {

constexpr int kOne = 1;  // kernels of a part use the worker's thread alone

// Columns of the rows as rows of their own: (start, stop, is_dense).
using PlanBlock = std::tuple<int64_t, int64_t, bool>;

// Rows of canonical CSR, and the words of their texts in their order; of no rows where no source looks at them. Those
// of a dense block are there as an array, too.
struct PlanRows {
  CsrView X{};
  Indptr word_indptr{};
  In1<int64_t> words{};
  In2<float> dense{};

  int64_t n() const { return static_cast<int64_t>(X.indptr.shape(0)) - 1; }
};

struct PlanPairs {
  Indptr indptr;
  Ids labels;

  // Of each pair the number of its label.
  Array1<float> numbers(const float* of_labels) const {
    std::vector<float> out(labels.shape(0));
    for (size_t p = 0; p < out.size(); ++p) out[p] = of_labels[labels(p)];
    return to_array(std::move(out));
  }
};

// Columns of one value a pair, in the order they came.
class PlanColumns {
 public:
  void add(Array1<float>&& column);
  // One column a row of the array.
  void add(Array2<float>&& columns);
  void add(Array2<float>&& columns, const std::vector<int>& wanted);

  const std::vector<Values>& views() const { return views_; }

 private:
  std::vector<std::vector<float>> held_;
  std::vector<Values> views_;
};

// One source of a plan: of some rows it makes what proposes and describes, which have work in common.
class PlanSource {
 public:
  struct AtWork {
    // At most k labels a row; missing where the source proposes none.
    std::function<LabelLists(int64_t k)> propose;
    std::function<void(const PlanPairs& pairs, PlanColumns& columns)> describe;
  };
  explicit PlanSource(std::function<AtWork(const PlanRows&)> on) : on_(std::move(on)) {}
  AtWork on(const PlanRows& rows) const { return on_(rows); }

 private:
  std::function<AtWork(const PlanRows&)> on_;
};

// The sources there are (plan_sources.cpp). What they are made of must outlive them.
//
// Distances to a label's nearest training points.
PlanSource plan_neighbors(const InvertedIndex& index, Indptr label_indptr, Ids label_rows,
                          const NeighborColumns& columns);
PlanSource plan_dense_neighbors(const DensePoints& points, Indptr label_indptr, Ids label_rows,
                                const NeighborColumns& columns);
// Distances to the mean of a label's points.
PlanSource plan_means(const LabelMeanIndex& index);
PlanSource plan_dense_means(In2<float> means, In1<uint8_t> known, double max_sq_norm);
// A number a label, whatever the row.
PlanSource plan_constants(Values values);
// Votes of the nearest of the rows `voters` by cosine similarity, which is their weight.
PlanSource plan_votes(const InvertedIndex& index, Ids voters, const Votes& votes, std::vector<int> ks,
                      bool by_name, double tie);
// Votes of the nearest by L2 distance, each weighing as much less as it is farther.
PlanSource plan_dense_votes(In2<float> X, Values sq_norm, Ids voters, const Votes& votes, std::vector<int> ks,
                            bool by_name, double tie);
// Linear classifiers; `lister` has biases of -inf for labels that are never proposed, `n_listed` are.
template <typename Weight>
PlanSource plan_weights(const WeightIndex<Weight>& scorer, const WeightIndex<Weight>& lister, int64_t n_listed);
// Linear classifiers of dense rows, of which the labels `listed` are proposed.
PlanSource plan_dense_weights(const WeightIndex<int16_t>& index, Ids listed);
// Products of the labels' vectors with the rows at unit length; where there is a `matrix` (columns of the vectors,
// columns of the rows), with these times it, at unit length again. Labels of positive scores are proposed.
PlanSource plan_label_vectors(In2<float> vectors, In2<float> matrix);
// Label trees over rows of unit length; each of several proposes at least `least_proposed` labels. The columns are
// log-probabilities of at least log(least).
PlanSource plan_trees(const LabelTrees& trees, int64_t beam, int64_t least_proposed, float scale, float least);
// How well rows fit the labels' texts: some of the columns of `LabelText::evidence`.
PlanSource plan_names(const LabelText& text, std::vector<int> columns);
// What the training rows tell of the labels' names: `LabelText::weighed`, and numbers of each label, (columns, L).
PlanSource plan_name_record(const LabelText& text, Values present, Values absent, In2<float> of_labels);
// Where texts mention the names of labels; `rarity` is of the forms of names.
PlanSource plan_mentions(const NameMentions& names, Values rarity);

// What the stages of a plan make of the columns of its sources.
struct PlanStages {
  std::vector<int> proposes, describes;  // numbers of sources, in the order of their proposals and columns
  std::vector<int64_t> own;         // columns that the table holds as they are
  bool standardize = false;              // whether it holds all of them standardised, too
  int64_t survivors = 0;            // pairs of a row that are described; 0: all
  float absent = 0.0f;                   // see proposal_columns
  double gap = 0.0;                      // see with_pairs_behind
};

class Plan {
 public:
  // (indptr, labels, rough, ahead, table, evidence) of some rows: their candidates and, of m pairs in all, those
  // `ahead`, which were described; `rough` is 0 where the row has no more than `survivors`, and both are empty where there
  // is no cascade; the table (described, columns) where asked for, otherwise the evidence of all.
  using Answer = std::tuple<Array1<int64_t>, Array1<int32_t>, Array1<double>, Array1<uint8_t>,
                            Array2<float>, Array1<double>>;

  // The block that each source reads, all columns where there is none.
  using Blocks = std::vector<std::optional<PlanBlock>>;

  // `cascade` judges pairs by their proposals and the labels' `rarity`; `ranker`, of which the mean of the outputs
  // counts, by the table. Either may be missing; without a ranker there are tables only.
  Plan(std::vector<const PlanSource*> sources, Blocks blocks, PlanStages stages, const BoostedTrees* cascade,
       Values rarity, const BoostedTrees* ranker);

  // `k`: labels that each source proposes.
  Answer answer(const PlanRows& rows, int64_t k, bool table, int n_threads) const;

 private:
  struct Part;
  Part part_of(const PlanRows& rows, int64_t k, bool table) const;
  void judge(const std::vector<ListView>& proposals, Part& part) const;
  Array1<double> evidence_of(const Array2<float>& table) const;

  std::vector<const PlanSource*> sources_;
  Blocks blocks_;
  PlanStages stages_;
  const BoostedTrees* cascade_;
  Values rarity_;
  const BoostedTrees* ranker_;
};

}  // namespace metarank
