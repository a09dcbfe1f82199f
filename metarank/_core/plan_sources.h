// The sources that a plan may have. What they are made of must outlive them.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "inverted_index.h"
#include "label_mean_index.h"
#include "label_trees.h"
#include "mentions.h"
#include "names.h"
#include "neighbors.h"
#include "plan.h"
#include "votes.h"
#include "weight_index.h"

namespace metarank {

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
template <typename Weight>
PlanSource plan_dense_weights(const WeightIndex<Weight>& index, Ids listed);
// Products with the labels' vectors, plus `bias`, of the rows divided by `scale`, of unit length, times `matrix`
// (columns of the vectors, columns of the rows); of an empty one there is none. Labels of positive scores are proposed.
PlanSource plan_label_vectors(In2<float> vectors, Values bias, Values scale, In2<float> matrix);
// Label trees over rows of unit length; each of several proposes at least `least_proposed` labels. The columns are
// log-probabilities of at least log(least).
PlanSource plan_trees(const LabelTrees& trees, int64_t beam, int64_t least_proposed, float scale, float least);
// How well rows fit the labels' texts: some of the columns of `LabelText::evidence`.
PlanSource plan_names(const LabelText& text, std::vector<int> columns);
// What the training rows tell of the labels' names: `LabelText::weighed`, and numbers of each label, (columns, L).
PlanSource plan_name_record(const LabelText& text, Values present, Values absent, In2<float> of_labels);
// Where texts mention the names of labels; `rarity` is of the forms of names.
PlanSource plan_mentions(const NameMentions& names, Values rarity);

}  // namespace metarank
