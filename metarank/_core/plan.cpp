#include "plan.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <tuple>
#include <utility>

#include "candidate_lists.h"
#include "distances.h"
#include "elementary.h"
#include "parallel.h"
#include "sparse_rows.h"
#include "rows.h"

namespace metarank {

namespace {

constexpr int kOne = 1;         // kernels of a part use the worker's thread alone
constexpr int64_t kRows = 256;  // of a part: more bring nothing more

// Lists of k labels each, row after row.
LabelLists even_lists(TopLabels&& top) {
  auto& [labels, scores] = top;
  const size_t n = labels.shape[0], k = labels.shape[1];
  std::vector<int64_t> indptr(n + 1);
  for (size_t i = 0; i <= n; ++i) indptr[i] = static_cast<int64_t>(i * k);
  return {to_array(std::move(indptr)), to_array(std::move(labels.values)), to_array(std::move(scores.values))};
}

void require_finite(const std::vector<float>& scores) {
  for (const float score : scores) require(std::isfinite(score), "scores must be finite");
}

template <typename T>
void append(Array1<T>& all, Array1<T>&& more) {
  all.values.insert(all.values.end(), more.values.begin(), more.values.end());
  all.shape = {all.values.size()};
}

void append(Array2<float>& all, Array2<float>&& more) {
  all.values.insert(all.values.end(), more.values.begin(), more.values.end());
  all.shape = {all.shape[0] + more.shape[0], more.shape[1]};
}

// Of each pair the number of its label.
Array1<float> of_labels(const float* numbers, const In1<int32_t>& labels) {
  std::vector<float> out(labels.shape(0));
  for (size_t p = 0; p < out.size(); ++p) out[p] = numbers[labels(p)];
  return to_array(std::move(out));
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

}  // namespace

void PlanColumns::add(Array1<float>&& column) {
  held_.push_back(std::move(column.values));
  views_.push_back(view_of(held_.back()));
}

void PlanColumns::add(Array2<float>&& columns) {
  std::vector<int> all(columns.shape[0]);
  std::iota(all.begin(), all.end(), 0);
  add(std::move(columns), all);
}

void PlanColumns::add(Array2<float>&& columns, const std::vector<int>& wanted) {
  const size_t m = columns.shape[1];
  held_.push_back(std::move(columns.values));
  for (const int j : wanted) views_.emplace_back(held_.back().data() + static_cast<size_t>(j) * m, std::array{m});
}

// --- sources ------------------------------------------------------------------------------------------------------

using AtWork = PlanSource::AtWork;

PlanSource plan_neighbors(const InvertedIndex& index, Indptr label_indptr, Ids label_rows,
                          const NeighborColumns& columns) {
  return PlanSource([=, &index](const PlanRows& rows) {
    return AtWork{nullptr, [&](const PlanPairs& pairs, PlanColumns& out) {
                    out.add(label_neighbors_sparse(
                        index, rows.X, {pairs.indptr, pairs.labels, label_indptr, label_rows}, columns, kOne));
                  }};
  });
}

PlanSource plan_means(const LabelMeanIndex& index) {
  return PlanSource([&index](const PlanRows& rows) {
    return AtWork{nullptr, [&](const PlanPairs& pairs, PlanColumns& out) {
                    out.add(distances(index, rows.X, pairs.indptr, pairs.labels, kOne));
                  }};
  });
}

PlanSource plan_constants(Values values) {
  return PlanSource([=](const PlanRows&) {
    return AtWork{nullptr,
                  [=](const PlanPairs& pairs, PlanColumns& out) { out.add(of_labels(values.data(), pairs.labels)); }};
  });
}

PlanSource plan_votes(const InvertedIndex& index, Ids voters, const Votes& votes, std::vector<int> ks, bool by_name,
                      double tie) {
  require(!ks.empty(), "ks must not be empty");
  const int most = *std::max_element(ks.begin(), ks.end());
  return PlanSource([=, &index, &votes](const PlanRows& rows) {
    auto nearest = std::make_shared<NearestRows>(nearest_rows_sparse(index, rows.X, voters, most, kCosine, kOne));
    auto& [ids, weights] = *nearest;
    for (size_t i = 0; i < weights.values.size(); ++i)
      weights.values[i] = ids.values[i] >= 0 ? std::max(1.0f - weights.values[i], 0.0f) : 0.0f;
    const In2<int32_t> voting = view_of(ids);
    const In2<float> weight = view_of(weights);
    return AtWork{[=, &votes](int64_t k) {
                    const auto at_most = static_cast<int>(std::min(k, votes.n_labels()));
                    return even_lists(votes.shortlist(voting, weight, tie, at_most, kOne));
                  },
                  [=, &votes, &ks](const PlanPairs& pairs, PlanColumns& out) {
                    out.add(votes.columns(voting, weight, pairs.indptr, pairs.labels, ks, kOne));
                    if (by_name) out.add(votes.kin_by_name(voting, weight, pairs.indptr, pairs.labels, kOne));
                    (void)nearest;  // held: its arrays are read
                  }};
  });
}

template <typename Weight>
PlanSource plan_weights(const WeightIndex<Weight>& scorer, const WeightIndex<Weight>& lister, int64_t n_listed) {
  return PlanSource([=, &scorer, &lister](const PlanRows& rows) {
    const auto sums = std::make_shared<Array2<float>>(scorer.sums(rows.X, kOne));
    return AtWork{[=, &lister](int64_t k) {
                    LabelLists lists = even_lists(lister.shortlist_of(view_of(*sums), std::min(k, n_listed)));
                    require_finite(lists.scores.values);
                    return lists;
                  },
                  [=, &scorer](const PlanPairs& pairs, PlanColumns& out) {
                    Array1<float> scores = scorer.scores_of(view_of(*sums), pairs.indptr, pairs.labels);
                    require_finite(scores.values);
                    out.add(std::move(scores));
                  }};
  });
}

template PlanSource plan_weights(const WeightIndex<int16_t>&, const WeightIndex<int16_t>&, int64_t);
template PlanSource plan_weights(const WeightIndex<float>&, const WeightIndex<float>&, int64_t);

PlanSource plan_trees(const LabelTrees& trees, int64_t width, int64_t least_proposed, float scale, float least) {
  return PlanSource([=, &trees](const PlanRows& rows) {
    const auto unit = std::make_shared<Array1<float>>(unit_rows(rows.X.indptr, rows.X.data));
    const CsrView X{rows.X.indptr, rows.X.indices, view_of(*unit)};
    return AtWork{[=, &trees](int64_t k) {
                    k = std::min(k, std::max<int64_t>(1, trees.n_labels()));
                    const int64_t of_tree = trees.n_trees() == 1 ? k : std::max(k, least_proposed);
                    auto [indptr, labels, scores, _] = trees.beam(X, width, k, of_tree, false, kOne);
                    for (float& score : scores.values) score *= scale;
                    return LabelLists{std::move(indptr), std::move(labels), std::move(scores)};
                  },
                  [=, &trees](const PlanPairs& pairs, PlanColumns& out) {
                    const auto n_trees = static_cast<size_t>(trees.n_trees());
                    auto [mean, by_tree] = trees.score_pairs(X, pairs.indptr, pairs.labels, n_trees > 1, kOne);
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
  return PlanSource([=, &text](const PlanRows& rows) {
    return AtWork{nullptr, [&](const PlanPairs& pairs, PlanColumns& out) {
                    out.add(text.weighed(rows.X, pairs.indptr, pairs.labels, present, absent, kOne));
                    for (size_t j = 0; j < numbers.shape(0); ++j)
                      out.add(of_labels(numbers.data() + j * numbers.shape(1), pairs.labels));
                  }};
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

// --- the plan -----------------------------------------------------------------------------------------------------

// What became of a few rows.
struct Plan::Part {
  Array1<int64_t> indptr{};
  Array1<int32_t> labels{};
  Array1<double> rough{}, evidence{};
  Array1<uint8_t> ahead{};
  Array2<float> table{};
};

namespace {

// Rows begin .. end of all; the bounds of their entries and words, from 0, are kept in the vectors.
PlanRows rows_between(const PlanRows& all, int64_t begin, int64_t end, std::vector<int64_t>& bounds,
                      std::vector<int64_t>& word_bounds) {
  const auto cut = [&](const In1<int64_t>& indptr, std::vector<int64_t>& out) {
    out.assign(indptr.data() + begin, indptr.data() + end + 1);
    const auto first = static_cast<size_t>(out.front());
    for (int64_t& bound : out) bound -= static_cast<int64_t>(first);
    return first;
  };
  const bool has_words = all.word_indptr.shape(0) == all.X.indptr.shape(0);
  word_bounds.assign(1, 0);
  const size_t first = cut(all.X.indptr, bounds), first_word = has_words ? cut(all.word_indptr, word_bounds) : 0;
  const auto size = static_cast<size_t>(bounds.back()), n_words = static_cast<size_t>(word_bounds.back());
  const CsrView X{view_of(bounds), {all.X.indices.data() + first, {size}}, {all.X.data.data() + first, {size}}, 0};
  return {X, view_of(word_bounds), {all.words.data() + first_word, {n_words}}};
}

}  // namespace

Plan::Plan(std::vector<const PlanSource*> sources, PlanStages stages, const BoostedTrees* cascade, Values rarity,
           const BoostedTrees* ranker)
    : sources_(std::move(sources)), stages_(std::move(stages)), cascade_(cascade), rarity_(rarity), ranker_(ranker) {
  require(!stages_.proposes.empty() && !stages_.describes.empty(), "a plan must propose and describe");
  for (const auto* numbers : {&stages_.proposes, &stages_.describes})
    for (const int i : *numbers)
      require(i >= 0 && static_cast<size_t>(i) < sources_.size(), "proposes and describes must be numbers of sources");
  require((cascade_ == nullptr) == (stages_.survivors == 0) && stages_.survivors >= 0,
          "survivors must be positive where there is a cascade");
}

Plan::Answer Plan::answer(const PlanRows& all_rows, int64_t k, bool table, int n_threads) const {
  const auto& [indptr, indices, data, _] = all_rows.X;
  require(k >= 1, "k must be positive");
  require(table || ranker_ != nullptr, "evidence needs a ranker");
  require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), "X must be a CSR matrix");
  require_indptr(indptr, static_cast<int64_t>(indices.shape(0)), "X.indptr");
  require_indptr(all_rows.word_indptr, static_cast<int64_t>(all_rows.words.shape(0)), "words.indptr");
  const int64_t n = all_rows.n(), block = std::clamp<int64_t>(n / n_threads, 1, kRows);
  std::vector<Part> parts(static_cast<size_t>((n + block - 1) / block));
  parallel_for(n, n_threads, block, [&](int64_t begin, int64_t end, int) {
    std::vector<int64_t> bounds, word_bounds;
    parts[begin / block] = part_of(rows_between(all_rows, begin, end, bounds, word_bounds), k, table);
  });
  Part all;
  all.indptr = to_array(std::vector<int64_t>{0});
  for (Part& part : parts) {
    const int64_t before = all.indptr.values.back();
    all.indptr.values.pop_back();
    for (int64_t& bound : part.indptr.values) bound += before;
    append(all.indptr, std::move(part.indptr));
    append(all.labels, std::move(part.labels));
    append(all.rough, std::move(part.rough));
    append(all.ahead, std::move(part.ahead));
    append(all.table, std::move(part.table));
    append(all.evidence, std::move(part.evidence));
  }
  return {std::move(all.indptr), std::move(all.labels), std::move(all.rough),
          std::move(all.ahead),  std::move(all.table),  std::move(all.evidence)};
}

Plan::Part Plan::part_of(const PlanRows& rows, int64_t k, bool table) const {
  std::vector<AtWork> sources;
  for (const PlanSource* source : sources_) sources.push_back(source->on(rows));
  std::vector<LabelLists> proposals;
  for (const int i : stages_.proposes) {
    const AtWork& source = sources[i];
    require(source.propose != nullptr, "the source proposes no labels");
    proposals.push_back(source.propose(k));
  }
  std::vector<ListView> views;
  for (const LabelLists& lists : proposals)
    views.push_back({view_of(lists.indptr), view_of(lists.labels), view_of(lists.scores)});
  Part part;
  std::tie(part.indptr, part.labels) = unite_lists(views);
  if (cascade_ != nullptr) judge(views, part);

  std::vector<int64_t> described_indptr{0};
  std::vector<int32_t> described;
  PlanPairs pairs{view_of(part.indptr), view_of(part.labels)};
  if (cascade_ != nullptr) {
    for (int64_t i = 0; i < rows.n(); ++i) {
      for (int64_t pair = pairs.indptr(i); pair < pairs.indptr(i + 1); ++pair)
        if (part.ahead.values[pair]) described.push_back(pairs.labels(pair));
      described_indptr.push_back(static_cast<int64_t>(described.size()));
    }
    pairs = {view_of(described_indptr), view_of(described)};
  }
  PlanColumns columns;
  for (const int i : stages_.describes) sources[i].describe(pairs, columns);
  part.table = feature_table(columns.views(), pairs.indptr, stages_.own, stages_.standardize, kOne);
  if (table) return part;
  part.evidence = evidence_of(part.table);
  if (cascade_ != nullptr)
    part.evidence = with_pairs_behind(view_of(part.evidence), view_of(part.rough), view_of(part.ahead),
                                      view_of(part.indptr), stages_.gap);
  part.table = {};
  return part;
}

void Plan::judge(const std::vector<ListView>& proposals, Part& part) const {
  const size_t m = part.labels.values.size();
  part.rough = to_array(std::vector<double>(m, 0.0));
  part.ahead = to_array(std::vector<uint8_t>(m, 1));
  int64_t longest = 0;
  for (size_t i = 0; i + 1 < part.indptr.values.size(); ++i)
    longest = std::max(longest, part.indptr.values[i + 1] - part.indptr.values[i]);
  if (longest <= stages_.survivors) return;
  const Array1<float> rarity = of_labels(rarity_.data(), view_of(part.labels));
  const Array2<float> table =
      proposal_columns(proposals, view_of(part.indptr), view_of(part.labels), view_of(rarity), stages_.absent, kOne);
  part.rough = to_array(std::move(cascade_->predict(view_of(table), kOne).values));
  part.ahead = foremost(view_of(part.rough), view_of(part.indptr), stages_.survivors);
}

Array1<double> Plan::evidence_of(const Array2<float>& table) const {
  Array2<double> raw = ranker_->predict(view_of(table), kOne);
  const size_t m = raw.shape[0], outputs = raw.shape[1];
  if (outputs == 1) return to_array(std::move(raw.values));
  std::vector<double> mean(m, 0.0);
  for (size_t pair = 0; pair < m; ++pair) {
    for (size_t j = 0; j < outputs; ++j) mean[pair] += raw.values[pair * outputs + j];
    mean[pair] /= static_cast<double>(outputs);
  }
  return to_array(std::move(mean));
}

}  // namespace metarank
