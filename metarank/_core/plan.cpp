#include "plan.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "parallel.h"

namespace metarank {

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

// What became of a few rows.
struct Plan::Part {
  Array1<int64_t> indptr{};
  Array1<int32_t> labels{};
  Array1<double> rough{}, evidence{};
  Array1<uint8_t> ahead{};
  Array2<float> table{};
};

namespace {

constexpr int64_t kRows = 256;  // of a part: more bring nothing more

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

// The columns of some rows that are a block.
struct BlockRows {
  std::vector<int64_t> indptr{0};
  std::vector<int32_t> indices;
  std::vector<float> data, dense;
  PlanRows rows;

  BlockRows(const PlanRows& all, const PlanBlock& block) {
    const auto [start, stop, is_dense] = block;
    const auto n = static_cast<size_t>(all.n()), width = static_cast<size_t>(stop - start);
    dense.resize(is_dense ? n * width : 0);
    for (size_t i = 0; i < n; ++i) {
      for (int64_t p = all.X.indptr(i); p < all.X.indptr(i + 1); ++p) {
        const int64_t j = all.X.indices(p) - start;
        if (j < 0 || all.X.indices(p) >= stop) continue;
        indices.push_back(static_cast<int32_t>(j));
        data.push_back(all.X.data(p));
        if (is_dense) dense[i * width + j] += all.X.data(p);
      }
      indptr.push_back(static_cast<int64_t>(indices.size()));
    }
    rows = {{view_of(indptr), view_of(indices), view_of(data)}, all.word_indptr, all.words,
            {dense.data(), {is_dense ? n : 0, width}}};
  }
};

}  // namespace

Plan::Plan(std::vector<const PlanSource*> sources, Blocks blocks, PlanStages stages, const BoostedTrees* cascade,
           Values rarity, const BoostedTrees* ranker)
    : sources_(std::move(sources)), blocks_(std::move(blocks)), stages_(std::move(stages)), cascade_(cascade),
      rarity_(rarity), ranker_(ranker) {
  require(blocks_.size() == sources_.size(), "blocks must have one entry a source");
  for (const auto& block : blocks_)
    require(!block || (std::get<0>(*block) >= 0 && std::get<0>(*block) <= std::get<1>(*block)),
            "blocks must be ranges of columns");
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
    for (int64_t& bound : part.indptr.values) bound += before;
    append(all.indptr, to_array(std::vector(part.indptr.values.begin() + 1, part.indptr.values.end())));
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
  std::map<PlanBlock, BlockRows> of_blocks;  // each cut once
  std::vector<PlanSource::AtWork> sources;
  for (size_t i = 0; i < sources_.size(); ++i) {
    const auto& block = blocks_[i];
    sources.push_back(sources_[i]->on(block ? of_blocks.try_emplace(*block, rows, *block).first->second.rows : rows));
  }
  std::vector<LabelLists> proposals;
  for (const int i : stages_.proposes) {
    const auto& source = sources[i];
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
  const Array1<float> rarity = PlanPairs{view_of(part.indptr), view_of(part.labels)}.numbers(rarity_.data());
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
