#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>

#include "coarse_rows.h"
#include "dense_scores.h"
#include "distances.h"
#include "elementary.h"
#include "lists.h"
#include "plan.h"
#include "rows.h"

namespace metarank {

namespace {

// Where rows of d entries each begin.
std::vector<int64_t> even_indptr(size_t n, size_t d) {
  std::vector<int64_t> indptr(n + 1);
  for (size_t i = 0; i <= n; ++i) indptr[i] = static_cast<int64_t>(i * d);
  return indptr;
}

// Lists of k labels each, row after row.
LabelLists even_lists(TopLabels&& top) {
  auto& [labels, scores] = top;
  return {to_array(even_indptr(labels.shape[0], labels.shape[1])), to_array(std::move(labels.values)),
          to_array(std::move(scores.values))};
}

In2<float> row_of(const In2<float>& rows, int64_t i) {
  return {rows.data() + i * rows.shape(1), {1, rows.shape(1)}};
}

// The columns of the pairs that texts mention, zeros elsewhere.
void describe_mentions(const Mentions& met, const PlanPairs& pairs, PlanColumns& out) {
  const size_t m = pairs.labels.shape(0), stored = met.labels.values.size();
  std::vector<size_t> at(m, stored);  // of each pair its mention, if there is one
  for (size_t i = 0; i + 1 < met.indptr.values.size(); ++i) {
    const auto first = met.labels.values.begin() + met.indptr.values[i];
    const auto stop = met.labels.values.begin() + met.indptr.values[i + 1];
    for (int64_t p = pairs.indptr(i); p < pairs.indptr(i + 1); ++p) {
      const auto place = std::lower_bound(first, stop, pairs.labels(p));
      if (place != stop && *place == pairs.labels(p)) at[p] = static_cast<size_t>(place - met.labels.values.begin());
    }
  }
  for (size_t c = 0; c < static_cast<size_t>(Mention::kScore); ++c) {
    std::vector<float> values(m, 0.0F);
    for (size_t p = 0; p < m; ++p)
      if (at[p] < stored) values[p] = met.columns.values[c * stored + at[p]];
    out.add(to_array(std::move(values)));
  }
}

using AtWork = PlanSource::AtWork;

// A source that proposes nothing.
template <typename Describe>
PlanSource describing(Describe describe) {
  return PlanSource([=](const PlanRows& rows) {
    return AtWork{nullptr, [&](const PlanPairs& pairs, PlanColumns& out) { describe(rows, pairs, out); }};
  });
}

// A source of scores of dense rows as queries(rows). It proposes the labels of the greatest above `least`, which is
// looked for among those that may be.
template <typename Queries, typename Scores>
PlanSource scoring(CoarseRows&& rows_of_labels, float least, Queries queries, Scores scores) {
  const auto coarse = std::make_shared<CoarseRows>(std::move(rows_of_labels));
  return PlanSource([=](const PlanRows& rows) {
    const auto asked = std::make_shared<Array2<float>>(queries(rows.dense));
    return AtWork{[=](int64_t k) {
                    return ListsOfRows::of(rows.n(), kOne, 1, [&](int64_t i, int64_t, ListsOfRows& lists) {
                      const In2<float> row = row_of(view_of(*asked), i);
                      const std::vector<int32_t> labels = coarse->foremost(row, k);
                      const std::vector<int64_t> indptr{0, static_cast<int64_t>(labels.size())};
                      const Array1<float> of_labels = scores(row, PlanPairs{view_of(indptr), view_of(labels)});
                      require_finite(view_of(of_labels), "scores");
                      std::vector<Scored> list;
                      for (size_t p = 0; p < labels.size(); ++p)
                        if (of_labels.values[p] > least) list.push_back({of_labels.values[p], labels[p]});
                      keep_best(list, k);
                      lists.add(list);
                      lists.end_row();
                    });
                  },
                  [=](const PlanPairs& pairs, PlanColumns& out) {
                    Array1<float> of_pairs = scores(view_of(*asked), pairs);
                    require_finite(view_of(of_pairs), "scores");
                    out.add(std::move(of_pairs));
                  }};
  });
}

// Votes of the nearest rows, of which `nearest` tells the weights.
PlanSource votes_of(std::function<NearestRows(const PlanRows&, int)> nearest, const Votes& votes, std::vector<int> ks,
                    bool by_name, double tie) {
  require(!ks.empty(), "ks must not be empty");
  const int most = *std::max_element(ks.begin(), ks.end());
  return PlanSource([=, &votes](const PlanRows& rows) {
    const auto voters = std::make_shared<NearestRows>(nearest(rows, most));
    const In2<int32_t> voting = view_of(std::get<0>(*voters));
    const In2<float> weight = view_of(std::get<1>(*voters));
    return AtWork{[=, &votes](int64_t k) {
                    const auto at_most = static_cast<int>(std::min(k, votes.n_labels()));
                    return even_lists(votes.shortlist(voting, weight, tie, at_most, kOne));
                  },
                  [=, &votes, &ks](const PlanPairs& pairs, PlanColumns& out) {
                    out.add(votes.columns(voting, weight, pairs.indptr, pairs.labels, ks, kOne));
                    if (by_name) out.add(votes.kin_by_name(voting, weight, pairs.indptr, pairs.labels, kOne));
                    (void)voters;  // held: its arrays are read
                  }};
  });
}

Array2<float> to_unit(const In2<float>& rows) {
  const size_t n = rows.shape(0), d = rows.shape(1);
  return to_array(std::move(unit_rows(view_of(even_indptr(n, d)), {rows.data(), {n * d}}).values), n, d);
}

// Of weights label by label the sums of some labels, features ascending.
METARANK_KERNEL void sums_of_labels(const float* x, const int16_t* W, int64_t d, const int32_t* labels, int64_t n,
                                    float* out) {
  for (int64_t j = 0; j < d; ++j)
    for (int64_t p = 0; p < n; ++p) out[p] += x[j] * static_cast<float>(W[labels[p] * d + j]);
}

}  // namespace

PlanSource plan_neighbors(const InvertedIndex& index, Indptr label_indptr, Ids label_rows,
                          const NeighborColumns& columns) {
  return describing([=, &index](const PlanRows& rows, const PlanPairs& pairs, PlanColumns& out) {
    const LabelPairs of{pairs.indptr, pairs.labels, label_indptr, label_rows};
    out.add(label_neighbors_sparse(index, rows.X, of, columns, kOne));
  });
}

PlanSource plan_dense_neighbors(const DensePoints& points, Indptr label_indptr, Ids label_rows,
                                const NeighborColumns& columns) {
  return describing([=](const PlanRows& rows, const PlanPairs& pairs, PlanColumns& out) {
    const LabelPairs of{pairs.indptr, pairs.labels, label_indptr, label_rows};
    const size_t metrics = columns.metrics.size(), n = rows.dense.shape(0);
    const Proposals none{{nullptr, {metrics, n, 0}}, {nullptr, {metrics, n}}};
    out.add(label_neighbors_dense(points, rows.dense, of, columns, none, kOne));
  });
}

PlanSource plan_means(const LabelMeanIndex& index) {
  return describing([&index](const PlanRows& rows, const PlanPairs& pairs, PlanColumns& out) {
    out.add(distances(index, rows.X, pairs.indptr, pairs.labels, kOne));
  });
}

PlanSource plan_dense_means(In2<float> means, In1<uint8_t> known, double longest) {
  return describing([=](const PlanRows& rows, const PlanPairs& pairs, PlanColumns& out) {
    out.add(centroid_distances_dense(means, known, longest, rows.dense, pairs.indptr, pairs.labels, kOne));
  });
}

PlanSource plan_constants(Values values) {
  return describing(
      [=](const PlanRows&, const PlanPairs& pairs, PlanColumns& out) { out.add(pairs.numbers(values.data())); });
}

PlanSource plan_votes(const InvertedIndex& index, Ids voters, const Votes& votes, std::vector<int> ks, bool by_name,
                      double tie) {
  const auto searched = std::make_shared<SearchedRows>(voters, index.n_rows());
  const auto nearest = [=, &index](const PlanRows& rows, int k) {
    NearestRows out = nearest_rows_sparse(index, rows.X, *searched, k, kCosine, kOne);
    auto& [ids, weights] = out;
    for (size_t i = 0; i < weights.values.size(); ++i)
      weights.values[i] = ids.values[i] >= 0 ? std::max(1.0f - weights.values[i], 0.0f) : 0.0f;
    return out;
  };
  return votes_of(nearest, votes, std::move(ks), by_name, tie);
}

PlanSource plan_dense_votes(In2<float> X, Values sq_norm, Ids voters, const Votes& votes, std::vector<int> ks,
                            bool by_name, double tie) {
  require_in_range(voters, static_cast<int64_t>(sq_norm.size()), "voters");
  std::vector<float> bias;  // the nearest of rows y is that of the greatest x . y - |y|^2 / 2
  for (size_t i = 0; i < voters.shape(0); ++i) bias.push_back(-sq_norm(voters(i)) / 2);
  const auto coarse =
      std::make_shared<CoarseRows>(X, std::vector<int32_t>(voters.data(), voters.data() + voters.size()), bias);
  const auto nearest = [=](const PlanRows& rows, int k) {
    NearestRows out{};
    for (int64_t i = 0; i < rows.n(); ++i) {
      const In2<float> row = row_of(rows.dense, i);
      const std::vector<int32_t> near = coarse->foremost(row, k);
      auto [ids, weights] = nearest_proposed_dense(X, row, {near.data(), {1, near.size()}}, k, kOne);
      const float farthest = *std::max_element(weights.values.begin(), weights.values.end());
      const float least = std::max(farthest / 1000, std::numeric_limits<float>::min());
      for (int j = 0; j < k; ++j)
        weights.values[j] = ids.values[j] < 0 ? 0.0f : least / std::max(weights.values[j], least);
      append(std::get<0>(out), std::move(ids));
      append(std::get<1>(out), std::move(weights));
    }
    return out;
  };
  return votes_of(nearest, votes, std::move(ks), by_name, tie);
}

template <typename Weight>
PlanSource plan_weights(const WeightIndex<Weight>& scorer, const WeightIndex<Weight>& lister, int64_t n_listed) {
  return PlanSource([=, &scorer, &lister](const PlanRows& rows) {
    const auto sums = std::make_shared<Array2<float>>(scorer.sums(rows.X, kOne));
    return AtWork{[=, &lister](int64_t k) {
                    LabelLists lists = even_lists(lister.shortlist_of(view_of(*sums), std::min(k, n_listed)));
                    require_finite(view_of(lists.scores), "scores");
                    return lists;
                  },
                  [=, &scorer](const PlanPairs& pairs, PlanColumns& out) {
                    Array1<float> scores = scorer.scores_of(view_of(*sums), pairs.indptr, pairs.labels);
                    require_finite(view_of(scores), "scores");
                    out.add(std::move(scores));
                  }};
  });
}

template PlanSource plan_weights(const WeightIndex<int16_t>&, const WeightIndex<int16_t>&, int64_t);
template PlanSource plan_weights(const WeightIndex<float>&, const WeightIndex<float>&, int64_t);

PlanSource plan_label_vectors(In2<float> vectors, In2<float> matrix) {
  std::vector<int32_t> labels(vectors.shape(0));
  std::iota(labels.begin(), labels.end(), 0);
  const auto zeros = std::make_shared<std::vector<float>>(std::max(vectors.shape(0), matrix.shape(0)), 0.0f);
  const Values no_bias(zeros->data(), {vectors.shape(0)}), no_offset(zeros->data(), {matrix.shape(0)});
  return scoring(
      CoarseRows(vectors, std::move(labels), std::vector<float>(vectors.shape(0), 0.0f)), 0.0f,
      [=](const In2<float>& rows) {
        Array2<float> unit = to_unit(rows);
        if (matrix.size() == 0) return unit;
        return to_unit(view_of(vector_scores(view_of(unit), matrix, no_offset, kOne)));
      },
      [=](const In2<float>& queries, const PlanPairs& pairs) {
        (void)zeros;  // held: no_bias is of it
        return vector_scores_of_pairs(queries, vectors, no_bias, pairs.indptr, pairs.labels, kOne);
      });
}

PlanSource plan_dense_weights(const WeightIndex<int16_t>& index, Ids listed) {
  const auto weights = std::make_shared<std::vector<int16_t>>(index.by_label());
  const auto d = static_cast<size_t>(index.n_features());
  const Values scale = index.scale(), bias = index.bias();
  require_in_range(listed, static_cast<int64_t>(scale.size()), "listed");
  std::vector<float> scaled(weights->begin(), weights->end()), of_listed;
  for (size_t p = 0; p < scaled.size(); ++p) scaled[p] *= scale(p / d);
  for (size_t i = 0; i < listed.size(); ++i) of_listed.push_back(bias(listed(i)));
  return scoring(
      CoarseRows({scaled.data(), {scale.size(), d}}, {listed.data(), listed.data() + listed.size()}, of_listed),
      -std::numeric_limits<float>::infinity(),
      [](const In2<float>& rows) {
        return to_array(std::vector<float>(rows.data(), rows.data() + rows.size()), rows.shape(0), rows.shape(1));
      },
      [=](const In2<float>& rows, const PlanPairs& pairs) {
        const auto n = static_cast<int64_t>(rows.shape(0)), n_labels = static_cast<int64_t>(scale.size());
        require_pairs(pairs.indptr, pairs.labels, n, n_labels);
        std::vector<float> out(pairs.labels.size());
        for (int64_t i = 0; i < n; ++i)
          by_level<sums_of_labels>(rows.data() + i * d, weights->data(), static_cast<int64_t>(d),
                                   pairs.labels.data() + pairs.indptr(i), pairs.indptr(i + 1) - pairs.indptr(i),
                                   out.data() + pairs.indptr(i));
        for (size_t p = 0; p < out.size(); ++p) out[p] = out[p] * scale(pairs.labels(p)) + bias(pairs.labels(p));
        return to_array(std::move(out));
      });
}

PlanSource plan_trees(const LabelTrees& trees, int64_t width, int64_t least_proposed, float scale, float least) {
  return PlanSource([=, &trees](const PlanRows& rows) {
    const auto unit = std::make_shared<Array1<float>>(unit_rows(rows.X.indptr, rows.X.data));
    const CsrView X{rows.X.indptr, rows.X.indices, view_of(*unit)};
    const auto reached = std::make_shared<Reached>();
    return AtWork{[=, &trees](int64_t k) {
                    k = std::min(k, std::max<int64_t>(1, trees.n_labels()));
                    const int64_t of_tree = trees.n_trees() == 1 ? k : std::max(k, least_proposed);
                    LabelLists lists = trees.beam(X, width, k, of_tree, kOne, reached.get());
                    for (float& score : lists.scores.values) score *= scale;
                    return lists;
                  },
                  [=, &trees](const PlanPairs& pairs, PlanColumns& out) {
                    const auto n_trees = static_cast<size_t>(trees.n_trees());
                    auto [mean, by_tree] = trees.score_pairs(X, width, pairs.indptr, pairs.labels, n_trees > 1, kOne,
                                                             reached->empty() ? nullptr : reached.get());
                    for (float& p : mean.values) p = static_cast<float>(elementary::log(std::max(p, least)));
                    out.add(std::move(mean));
                    for (size_t t = 0; by_tree && t < n_trees; ++t) {
                      std::vector<float> of_tree(pairs.labels.shape(0));
                      for (size_t pair = 0; pair < of_tree.size(); ++pair)
                        of_tree[pair] = by_tree->values[pair * n_trees + t];
                      out.add(to_array(std::move(of_tree)));
                    }
                    (void)unit;  // held: X reads on in it
                  }};
  });
}

PlanSource plan_names(const LabelText& text, std::vector<int> columns) {
  for (const int j : columns) require(j >= 0 && j < 4, "columns must lie in [0, 4)");
  return PlanSource([&text, columns](const PlanRows& rows) {
    return AtWork{[&](int64_t k) { return text.shortlist(rows.X, k, kOne); },
                  [&](const PlanPairs& pairs, PlanColumns& out) {
                    out.add(text.evidence(rows.X, pairs.indptr, pairs.labels, kOne), columns);
                  }};
  });
}

PlanSource plan_name_record(const LabelText& text, Values present, Values absent, In2<float> numbers) {
  require(static_cast<int64_t>(numbers.shape(1)) == text.n_labels(), "of_labels must have one column a label");
  return describing([=, &text](const PlanRows& rows, const PlanPairs& pairs, PlanColumns& out) {
    out.add(text.weighed(rows.X, pairs.indptr, pairs.labels, present, absent, kOne));
    for (size_t j = 0; j < numbers.shape(0); ++j) out.add(pairs.numbers(numbers.data() + j * numbers.shape(1)));
  });
}

PlanSource plan_mentions(const NameMentions& names, Values rarity) {
  require(static_cast<int64_t>(rarity.shape(0)) == names.n_forms(), "rarity must be of all forms");
  return PlanSource([=, &names](const PlanRows& rows) {
    const auto met = std::make_shared<Mentions>(names.find(rows.word_indptr, rows.words, rarity, kOne));
    require(static_cast<int64_t>(met->indptr.values.size()) == rows.n() + 1, "words must be of as many rows as X");
    return AtWork{[=](int64_t k) { return met->best(k); },
                  [=](const PlanPairs& pairs, PlanColumns& out) { describe_mentions(*met, pairs, out); }};
  });
}

}  // namespace metarank
