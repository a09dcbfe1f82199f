// A fitted model's way from sparse rows to scored lists, stage by stage, without a stop between them:
// proposals, their union, the cascade, columns, the table of features, boosted trees.
//
// Rows are taken a part at a time, by several workers. The numbers are those of the kernels, which do not depend on
// the rows beside a row.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "arrays.h"
#include "boosted_trees.h"
#include "inverted_index.h"
#include "label_mean_index.h"
#include "label_neighbors.h"
#include "label_trees.h"
#include "mentions.h"
#include "names.h"
#include "votes.h"
#include "weight_index.h"

namespace metarank {

// Rows of canonical CSR, and the words of their texts in their order; of no rows where no source looks at them.
struct PlanRows {
  In1<std::int64_t> indptr;
  In1<std::int32_t> indices;
  In1<float> data;
  In1<std::int64_t> word_indptr, words;

  std::int64_t n() const { return static_cast<std::int64_t>(indptr.shape(0)) - 1; }
};

// Labels of each row, ascending, with a score where a source proposes them.
struct LabelLists {
  Array1<std::int64_t> indptr;
  Array1<std::int32_t> labels;
  Array1<float> scores;
};

struct PlanPairs {
  In1<std::int64_t> indptr;
  In1<std::int32_t> labels;
};

// Columns of one value a pair, in the order they came.
class PlanColumns {
 public:
  void add(Array1<float>&& column);
  // One column a row of the array.
  void add(Array2<float>&& columns);
  void add(Array2<float>&& columns, const std::vector<int>& wanted);

  const std::vector<In1<float>>& views() const { return views_; }

 private:
  std::vector<std::vector<float>> held_;
  std::vector<In1<float>> views_;
};

// A source at work on some rows: it remembers what proposing and describing have in common.
class SourceAtWork {
 public:
  virtual ~SourceAtWork() = default;
  // At most k labels a row.
  virtual LabelLists propose(std::int64_t k);
  virtual void describe(const PlanPairs& pairs, PlanColumns& columns) = 0;
};

// One source of a plan. What it is made of must outlive it.
class PlanSource {
 public:
  virtual ~PlanSource() = default;
  virtual std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const = 0;
};

// Distances to a label's nearest training points.
class PlanNeighbors : public PlanSource {
 public:
  PlanNeighbors(const InvertedIndex& index, In1<std::int64_t> label_indptr, In1<std::int32_t> label_rows,
                NeighborColumns columns)
      : index_(index), label_indptr_(label_indptr), label_rows_(label_rows), columns_(std::move(columns)) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  const InvertedIndex& index_;
  In1<std::int64_t> label_indptr_;
  In1<std::int32_t> label_rows_;
  NeighborColumns columns_;
};

// Distances to the mean of a label's points.
class PlanMeans : public PlanSource {
 public:
  explicit PlanMeans(const LabelMeanIndex& index) : index_(index) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  const LabelMeanIndex& index_;
};

// A number a label, whatever the row.
class PlanConstants : public PlanSource {
 public:
  explicit PlanConstants(In1<float> values) : values_(values) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  In1<float> values_;
};

// Votes of the nearest of the rows `voters` by cosine similarity, which is their weight.
class PlanVotes : public PlanSource {
 public:
  PlanVotes(const InvertedIndex& index, In1<std::int32_t> voters, const Votes& votes, std::vector<int> ks,
            bool by_name, double tie)
      : index_(index), voters_(voters), votes_(votes), ks_(std::move(ks)), by_name_(by_name), tie_(tie) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  const InvertedIndex& index_;
  In1<std::int32_t> voters_;
  const Votes& votes_;
  std::vector<int> ks_;
  bool by_name_;
  double tie_;
};

// Linear classifiers; `lister` has biases of -inf for labels that are never proposed, `n_listed` are.
template <typename Weight>
class PlanWeights : public PlanSource {
 public:
  PlanWeights(const WeightIndex<Weight>& scorer, const WeightIndex<Weight>& lister, std::int64_t n_listed)
      : scorer_(scorer), lister_(lister), n_listed_(n_listed) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  const WeightIndex<Weight>& scorer_;
  const WeightIndex<Weight>& lister_;
  std::int64_t n_listed_;
};

// Label trees over rows of unit length; each of several proposes at least `least_proposed` labels. The columns are
// log-probabilities of at least log(least).
class PlanTrees : public PlanSource {
 public:
  PlanTrees(const LabelTrees& trees, std::int64_t beam, std::int64_t least_proposed, float scale, float least)
      : trees_(trees), beam_(beam), least_proposed_(least_proposed), scale_(scale), least_(least) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  const LabelTrees& trees_;
  std::int64_t beam_, least_proposed_;
  float scale_, least_;
};

// How well rows fit the labels' texts: some of the columns of `LabelText::evidence`.
class PlanNames : public PlanSource {
 public:
  PlanNames(const LabelText& text, std::vector<int> columns) : text_(text), columns_(std::move(columns)) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  const LabelText& text_;
  std::vector<int> columns_;
};

// What the training rows tell of the labels' names: `LabelText::weighed`, and numbers of each label, (columns, L).
class PlanNameRecord : public PlanSource {
 public:
  PlanNameRecord(const LabelText& text, In1<float> present, In1<float> absent, In2<float> of_labels)
      : text_(text), present_(present), absent_(absent), of_labels_(of_labels) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  const LabelText& text_;
  In1<float> present_, absent_;
  In2<float> of_labels_;
};

// Where texts mention the names of labels; `rarity` is of the forms of names.
class PlanMentions : public PlanSource {
 public:
  PlanMentions(const NameMentions& names, In1<float> rarity) : names_(names), rarity_(rarity) {}
  std::unique_ptr<SourceAtWork> on(const PlanRows& rows) const override;

 private:
  class AtWork;
  const NameMentions& names_;
  In1<float> rarity_;
};

// What the stages of a plan make of the columns of its sources.
struct PlanStages {
  std::vector<int> proposes, describes;  // numbers of sources, in the order of their proposals and columns
  std::vector<std::int64_t> own;         // columns that the table holds as they are
  bool standardize = false;              // whether it holds all of them standardised, too
  std::int64_t survivors = 0;            // pairs of a row that are described; 0: all
  float absent = 0.0f;                   // see proposal_columns
  double gap = 0.0;                      // see with_pairs_behind
};

class Plan {
 public:
  // What became of some rows: their candidates and, of m pairs in all, those `ahead`, which were described; the
  // table of these or the evidence of all.
  struct Answer {
    Array1<std::int64_t> indptr;
    Array1<std::int32_t> labels;
    Array1<double> rough;         // 0 where the row has no more than `survivors`; empty where there is no cascade
    Array1<std::uint8_t> ahead;   // empty where there is no cascade
    Array2<float> table;          // (described, columns), where asked for
    Array1<double> evidence;      // (m), otherwise
  };

  // `cascade` judges pairs by their proposals and the labels' `rarity`; `ranker`, of which the mean of the outputs
  // counts, by the table. Either may be missing; without a ranker there are tables only.
  Plan(std::vector<const PlanSource*> sources, PlanStages stages, const BoostedTrees* cascade, In1<float> rarity,
       const BoostedTrees* ranker);

  // `k`: labels that each source proposes.
  Answer answer(const PlanRows& rows, std::int64_t k, bool table, int n_threads) const;

 private:
  struct Part;
  Part part_of(const PlanRows& rows, std::int64_t k, bool table) const;
  void judge(const std::vector<LabelLists>& proposals, Part& part) const;
  std::vector<double> evidence_of(const Array2<float>& table) const;

  std::vector<const PlanSource*> sources_;
  PlanStages stages_;
  const BoostedTrees* cascade_;
  In1<float> rarity_;
  const BoostedTrees* ranker_;
};

}  // namespace metarank
