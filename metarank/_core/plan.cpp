#include "plan.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

#include "candidate_lists.h"
#include "elementary.h"
#include "nearest_rows.h"
#include "parallel.h"
#include "query_rows.h"
#include "standardize.h"
#include "unit_rows.h"

namespace metarank {

namespace {

constexpr int kOne = 1;             // kernels of a part use the worker's thread alone
constexpr std::int64_t kRows = 256;  // of a part: more bring nothing more

template <typename T>
In1<T> view_of(const std::vector<T>& values) {
  return In1<T>(values.data(), {values.size()});
}
template <typename T>
In1<T> view_of(const Array1<T>& array) {
  return view_of(array.values);
}
template <typename T>
In2<T> view_of(const Array2<T>& array) {
  return In2<T>(array.values.data(), array.shape);
}

// Lists of k labels each, row after row.
LabelLists even_lists(TopLabels&& found) {
  auto& [labels, scores] = found;
  const std::size_t n = labels.shape[0], k = labels.shape[1];
  std::vector<std::int64_t> indptr(n + 1);
  for (std::size_t i = 0; i <= n; ++i) indptr[i] = static_cast<std::int64_t>(i * k);
  return {to_array(std::move(indptr)), to_array(std::move(labels.values)), to_array(std::move(scores.values))};
}

void require_finite(const std::vector<float>& scores) {
  for (const float score : scores) require(std::isfinite(score), "scores must be finite");
}

template <typename T>
void append(std::vector<T>& all, std::vector<T>&& more) {
  if (all.empty()) {
    all = std::move(more);
  } else {
    all.insert(all.end(), more.begin(), more.end());
  }
}

}  // namespace

void PlanColumns::add(Array1<float>&& column) {
  held_.push_back(std::move(column.values));
  views_.push_back(view_of(held_.back()));
}

void PlanColumns::add(Array2<float>&& columns) {
  std::vector<int> all(columns.shape[0]);
  for (std::size_t j = 0; j < all.size(); ++j) all[j] = static_cast<int>(j);
  add(std::move(columns), all);
}

void PlanColumns::add(Array2<float>&& columns, const std::vector<int>& wanted) {
  const std::size_t m = columns.shape[1];
  held_.push_back(std::move(columns.values));
  for (const int j : wanted) views_.emplace_back(held_.back().data() + static_cast<std::size_t>(j) * m, std::array{m});
}

LabelLists SourceAtWork::propose(std::int64_t) { throw std::invalid_argument("the source proposes no labels"); }

// --- sources ------------------------------------------------------------------------------------------------------

class PlanNeighbors::AtWork : public SourceAtWork {
 public:
  AtWork(const PlanNeighbors& source, const PlanRows& rows) : source_(source), rows_(rows) {}
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    const LabelPairs asked{pairs.indptr, pairs.labels, source_.label_indptr_, source_.label_rows_};
    columns.add(label_neighbors_sparse(source_.index_, rows_.indptr, rows_.indices, rows_.data, asked, source_.columns_,
                                       kOne));
  }

 private:
  const PlanNeighbors& source_;
  const PlanRows& rows_;
};

std::unique_ptr<SourceAtWork> PlanNeighbors::on(const PlanRows& rows) const {
  return std::make_unique<AtWork>(*this, rows);
}

class PlanMeans::AtWork : public SourceAtWork {
 public:
  AtWork(const PlanMeans& source, const PlanRows& rows) : source_(source), rows_(rows) {}
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    columns.add(distances(source_.index_, rows_.indptr, rows_.indices, rows_.data, pairs.indptr, pairs.labels, kOne));
  }

 private:
  const PlanMeans& source_;
  const PlanRows& rows_;
};

std::unique_ptr<SourceAtWork> PlanMeans::on(const PlanRows& rows) const {
  return std::make_unique<AtWork>(*this, rows);
}

class PlanConstants::AtWork : public SourceAtWork {
 public:
  explicit AtWork(const PlanConstants& source) : source_(source) {}
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    std::vector<float> values(pairs.labels.shape(0));
    for (std::size_t pair = 0; pair < values.size(); ++pair) values[pair] = source_.values_(pairs.labels(pair));
    columns.add(to_array(std::move(values)));
  }

 private:
  const PlanConstants& source_;
};

std::unique_ptr<SourceAtWork> PlanConstants::on(const PlanRows&) const { return std::make_unique<AtWork>(*this); }

class PlanVotes::AtWork : public SourceAtWork {
 public:
  AtWork(const PlanVotes& source, const PlanRows& rows) : source_(source) {
    const int most = *std::max_element(source.ks_.begin(), source.ks_.end());
    std::tie(rows_, weights_) =
        nearest_rows_sparse(source.index_, rows.indptr, rows.indices, rows.data, source.voters_, most, static_cast<int>(Metric::kCosine), kOne);
    for (std::size_t i = 0; i < weights_.values.size(); ++i) {
      float& distance = weights_.values[i];
      distance = rows_.values[i] >= 0 ? std::max(1.0f - distance, 0.0f) : 0.0f;
    }
  }
  LabelLists propose(std::int64_t k) override {
    const auto most = static_cast<int>(std::min(k, source_.votes_.n_labels()));
    return even_lists(source_.votes_.shortlist(view_of(rows_), view_of(weights_), source_.tie_, most, kOne));
  }
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    const auto rows = view_of(rows_);
    const auto weights = view_of(weights_);
    columns.add(source_.votes_.columns(rows, weights, pairs.indptr, pairs.labels, source_.ks_, kOne));
    if (source_.by_name_) columns.add(source_.votes_.kin_by_name(rows, weights, pairs.indptr, pairs.labels, kOne));
  }

 private:
  const PlanVotes& source_;
  Array2<std::int32_t> rows_;
  Array2<float> weights_;
};

std::unique_ptr<SourceAtWork> PlanVotes::on(const PlanRows& rows) const {
  return std::make_unique<AtWork>(*this, rows);
}

template <typename Weight>
class PlanWeights<Weight>::AtWork : public SourceAtWork {
 public:
  AtWork(const PlanWeights& source, const PlanRows& rows)
      : source_(source), sums_(source.scorer_.sums(rows.indptr, rows.indices, rows.data, kOne)) {}
  LabelLists propose(std::int64_t k) override {
    LabelLists lists = even_lists(source_.lister_.shortlist_of(view_of(sums_), std::min(k, source_.n_listed_)));
    require_finite(lists.scores.values);
    return lists;
  }
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    Array1<float> scores = source_.scorer_.scores_of(view_of(sums_), pairs.indptr, pairs.labels);
    require_finite(scores.values);
    columns.add(std::move(scores));
  }

 private:
  const PlanWeights& source_;
  Array2<float> sums_;
};

template <typename Weight>
std::unique_ptr<SourceAtWork> PlanWeights<Weight>::on(const PlanRows& rows) const {
  return std::make_unique<AtWork>(*this, rows);
}

template class PlanWeights<std::int16_t>;
template class PlanWeights<float>;

class PlanTrees::AtWork : public SourceAtWork {
 public:
  AtWork(const PlanTrees& source, const PlanRows& rows)
      : source_(source),
        unit_(unit_rows(rows.indptr, rows.data)),
        rows_(require_rows(rows.indptr, rows.indices, view_of(unit_), source.trees_.n_features())) {}
  LabelLists propose(std::int64_t k) override {
    const LabelTrees& trees = source_.trees_;
    k = std::min(k, std::max<std::int64_t>(1, trees.n_labels()));
    const std::int64_t of_tree = trees.n_trees() == 1 ? k : std::max(k, source_.least_proposed_);
    auto [indptr, labels, scores, _] = beam(trees, rows_, {source_.beam_, k, of_tree, false}, kOne);
    for (float& score : scores.values) score *= source_.scale_;
    return {std::move(indptr), std::move(labels), std::move(scores)};
  }
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    const auto n_trees = static_cast<std::size_t>(source_.trees_.n_trees());
    auto [mean, by_tree] = score_pairs(source_.trees_, rows_, pairs.indptr, pairs.labels, n_trees > 1, kOne);
    for (float& p : mean.values) p = static_cast<float>(elementary::log(std::max(p, source_.least_)));
    columns.add(std::move(mean));
    for (std::size_t t = 0; by_tree && t < n_trees; ++t) {
      std::vector<float> of_tree(pairs.labels.shape(0));
      for (std::size_t pair = 0; pair < of_tree.size(); ++pair) of_tree[pair] = by_tree->values[pair * n_trees + t];
      columns.add(to_array(std::move(of_tree)));
    }
  }

 private:
  const PlanTrees& source_;
  Array1<float> unit_;
  QueryRows rows_;
};

std::unique_ptr<SourceAtWork> PlanTrees::on(const PlanRows& rows) const {
  return std::make_unique<AtWork>(*this, rows);
}

class PlanNames::AtWork : public SourceAtWork {
 public:
  AtWork(const PlanNames& source, const PlanRows& rows) : source_(source), rows_(rows) {}
  LabelLists propose(std::int64_t k) override {
    k = std::min(k, std::max<std::int64_t>(1, source_.text_.n_labels()));
    auto [indptr, labels, scores] = source_.text_.shortlist(rows_.indptr, rows_.indices, rows_.data, k, kOne);
    return {std::move(indptr), std::move(labels), std::move(scores)};
  }
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    columns.add(
        source_.text_.evidence(rows_.indptr, rows_.indices, rows_.data, pairs.indptr, pairs.labels, kOne),
        source_.columns_);
  }

 private:
  const PlanNames& source_;
  const PlanRows& rows_;
};

std::unique_ptr<SourceAtWork> PlanNames::on(const PlanRows& rows) const {
  return std::make_unique<AtWork>(*this, rows);
}

class PlanNameRecord::AtWork : public SourceAtWork {
 public:
  AtWork(const PlanNameRecord& source, const PlanRows& rows) : source_(source), rows_(rows) {}
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    columns.add(source_.text_.weighed(rows_.indptr, rows_.indices, rows_.data, pairs.indptr, pairs.labels,
                                      source_.present_, source_.absent_, kOne));
    const std::size_t m = pairs.labels.shape(0), n_labels = source_.of_labels_.shape(1);
    for (std::size_t j = 0; j < source_.of_labels_.shape(0); ++j) {
      const float* const of_label = source_.of_labels_.data() + j * n_labels;
      std::vector<float> values(m);
      for (std::size_t p = 0; p < m; ++p) values[p] = of_label[pairs.labels.data()[p]];
      columns.add(to_array(std::move(values)));
    }
  }

 private:
  const PlanNameRecord& source_;
  const PlanRows& rows_;
};

std::unique_ptr<SourceAtWork> PlanNameRecord::on(const PlanRows& rows) const {
  return std::make_unique<AtWork>(*this, rows);
}

class PlanMentions::AtWork : public SourceAtWork {
 public:
  AtWork(const PlanMentions& source, const PlanRows& rows)
      : found_(source.names_.find(rows.word_indptr, rows.words, source.rarity_, kOne)), n_(rows.n()) {
    require(static_cast<std::int64_t>(found_.indptr.values.size()) == n_ + 1, "words must be of as many rows as X");
  }
  LabelLists propose(std::int64_t k) override {
    auto [indptr, labels, scores] = found_.best(k);
    return {std::move(indptr), std::move(labels), std::move(scores)};
  }
  void describe(const PlanPairs& pairs, PlanColumns& columns) override {
    const std::size_t m = pairs.labels.shape(0), stored = found_.labels.values.size();
    std::vector<std::size_t> at(m, stored);  // of each pair its mention, if there is one
    for (std::int64_t i = 0; i < n_; ++i) {
      const auto first = found_.labels.values.begin() + found_.indptr.values[static_cast<std::size_t>(i)];
      const auto stop = found_.labels.values.begin() + found_.indptr.values[static_cast<std::size_t>(i) + 1];
      for (std::int64_t p = pairs.indptr(i); p < pairs.indptr(i + 1); ++p) {
        const auto place = std::lower_bound(first, stop, pairs.labels(p));
        if (place != stop && *place == pairs.labels(p))
          at[static_cast<std::size_t>(p)] = static_cast<std::size_t>(place - found_.labels.values.begin());
      }
    }
    for (std::size_t c = 0; c < static_cast<std::size_t>(Mention::kScore); ++c) {
      const float* const of = found_.columns.values.data() + c * stored;
      std::vector<float> values(m, 0.0F);
      for (std::size_t p = 0; p < m; ++p)
        if (at[p] < stored) values[p] = of[at[p]];
      columns.add(to_array(std::move(values)));
    }
  }

 private:
  Mentions found_;
  std::int64_t n_;
};

std::unique_ptr<SourceAtWork> PlanMentions::on(const PlanRows& rows) const {
  return std::make_unique<AtWork>(*this, rows);
}

// --- the plan -----------------------------------------------------------------------------------------------------

// What became of a few rows.
struct Plan::Part {
  Array1<std::int64_t> indptr;
  Array1<std::int32_t> labels;
  std::vector<double> rough, evidence;
  std::vector<std::uint8_t> ahead;
  Array2<float> table{};
};

Plan::Plan(std::vector<const PlanSource*> sources, PlanStages stages, const BoostedTrees* cascade, In1<float> rarity,
           const BoostedTrees* ranker)
    : sources_(std::move(sources)), stages_(std::move(stages)), cascade_(cascade), rarity_(rarity), ranker_(ranker) {
  require(!stages_.proposes.empty() && !stages_.describes.empty(), "a plan must propose and describe");
  for (const auto* numbers : {&stages_.proposes, &stages_.describes})
    for (const int i : *numbers)
      require(i >= 0 && static_cast<std::size_t>(i) < sources_.size(), "proposes and describes must be numbers of sources");
  require((cascade_ == nullptr) == (stages_.survivors == 0) && stages_.survivors >= 0,
          "survivors must be positive where there is a cascade");
}

Plan::Answer Plan::answer(const PlanRows& all_rows, std::int64_t k, bool table, int n_threads) const {
  const auto& [indptr, indices, data, word_indptr, words] = all_rows;
  require(k >= 1, "k must be positive");
  require(n_threads >= 1, "n_threads must be positive");
  require(table || ranker_ != nullptr, "evidence needs a ranker");
  require(indptr.shape(0) >= 1 && indices.shape(0) == data.shape(0), "X must be a CSR matrix");
  require_indptr(indptr, static_cast<std::int64_t>(indices.shape(0)), "X.indptr");
  require_indptr(word_indptr, static_cast<std::int64_t>(words.shape(0)), "words.indptr");
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  const bool has_words = word_indptr.shape(0) == indptr.shape(0);
  const std::int64_t block = std::clamp<std::int64_t>(n / n_threads, 1, kRows);
  std::vector<Part> parts(static_cast<std::size_t>((n + block - 1) / block));
  parallel_for(n, n_threads, block, [&](std::int64_t begin, std::int64_t end, int) {
    const auto first = static_cast<std::size_t>(indptr(begin)), size = static_cast<std::size_t>(indptr(end)) - first;
    std::vector<std::int64_t> bounds(indptr.data() + begin, indptr.data() + end + 1);
    for (std::int64_t& bound : bounds) bound -= static_cast<std::int64_t>(first);
    std::vector<std::int64_t> word_bounds{0};
    std::size_t first_word = 0;
    if (has_words) {
      first_word = static_cast<std::size_t>(word_indptr(begin));
      word_bounds.assign(word_indptr.data() + begin, word_indptr.data() + end + 1);
      for (std::int64_t& bound : word_bounds) bound -= static_cast<std::int64_t>(first_word);
    }
    const PlanRows rows{view_of(bounds),
                        In1<std::int32_t>(indices.data() + first, {size}),
                        In1<float>(data.data() + first, {size}),
                        view_of(word_bounds),
                        In1<std::int64_t>(words.data() + first_word, {static_cast<std::size_t>(word_bounds.back())})};
    parts[static_cast<std::size_t>(begin / block)] = part_of(rows, k, table);
  });
  Answer all{};
  all.indptr = to_array(std::vector<std::int64_t>{0});
  for (Part& part : parts) {
    const std::int64_t before = all.indptr.values.back();
    for (std::size_t i = 1; i < part.indptr.values.size(); ++i)
      all.indptr.values.push_back(before + part.indptr.values[i]);
    append(all.labels.values, std::move(part.labels.values));
    append(all.rough.values, std::move(part.rough));
    append(all.ahead.values, std::move(part.ahead));
    append(all.table.values, std::move(part.table.values));
    append(all.evidence.values, std::move(part.evidence));
    all.table.shape[0] += part.table.shape[0];
    all.table.shape[1] = part.table.shape[1];
  }
  for (auto* array : {&all.rough, &all.evidence}) array->shape = {array->values.size()};
  all.indptr.shape = {all.indptr.values.size()};
  all.labels.shape = {all.labels.values.size()};
  all.ahead.shape = {all.ahead.values.size()};
  return all;
}

Plan::Part Plan::part_of(const PlanRows& rows, std::int64_t k, bool table) const {
  std::vector<std::unique_ptr<SourceAtWork>> sources;
  for (const PlanSource* source : sources_) sources.push_back(source->on(rows));
  std::vector<LabelLists> proposals;
  for (const int i : stages_.proposes) proposals.push_back(sources[static_cast<std::size_t>(i)]->propose(k));
  std::vector<In1<std::int64_t>> indptr;
  std::vector<In1<std::int32_t>> labels;
  for (const LabelLists& lists : proposals) {
    indptr.push_back(view_of(lists.indptr));
    labels.push_back(view_of(lists.labels));
  }
  Part part;
  std::tie(part.indptr, part.labels) = unite_lists(indptr, labels);
  if (cascade_ != nullptr) judge(proposals, part);

  std::vector<std::int64_t> described_indptr{0};
  std::vector<std::int32_t> described;
  PlanPairs pairs{view_of(part.indptr), view_of(part.labels)};
  if (cascade_ != nullptr) {
    for (std::int64_t i = 0; i < rows.n(); ++i) {
      for (std::int64_t pair = pairs.indptr(i); pair < pairs.indptr(i + 1); ++pair)
        if (part.ahead[static_cast<std::size_t>(pair)]) described.push_back(pairs.labels(pair));
      described_indptr.push_back(static_cast<std::int64_t>(described.size()));
    }
    pairs = {view_of(described_indptr), view_of(described)};
  }
  PlanColumns columns;
  for (const int i : stages_.describes) sources[static_cast<std::size_t>(i)]->describe(pairs, columns);
  part.table = feature_table(columns.views(), pairs.indptr, stages_.own, stages_.standardize, kOne);
  if (table) return part;
  part.evidence = evidence_of(part.table);
  if (cascade_ != nullptr)
    part.evidence = with_pairs_behind(view_of(part.evidence), view_of(part.rough), view_of(part.ahead),
                                      view_of(part.indptr), stages_.gap)
                        .values;
  part.table = {};
  return part;
}

void Plan::judge(const std::vector<LabelLists>& proposals, Part& part) const {
  const std::size_t m = part.labels.values.size();
  part.rough.assign(m, 0.0);
  part.ahead.assign(m, 1);
  std::int64_t longest = 0;
  for (std::size_t i = 0; i + 1 < part.indptr.values.size(); ++i)
    longest = std::max(longest, part.indptr.values[i + 1] - part.indptr.values[i]);
  if (longest <= stages_.survivors) return;
  std::vector<In1<std::int64_t>> indptr;
  std::vector<In1<std::int32_t>> labels;
  std::vector<In1<float>> scores;
  for (const LabelLists& lists : proposals) {
    indptr.push_back(view_of(lists.indptr));
    labels.push_back(view_of(lists.labels));
    scores.push_back(view_of(lists.scores));
  }
  std::vector<float> rarity(m);
  for (std::size_t pair = 0; pair < m; ++pair) rarity[pair] = rarity_(part.labels.values[pair]);
  const Array2<float> table = proposal_columns(indptr, labels, scores, view_of(part.indptr), view_of(part.labels),
                                               view_of(rarity), stages_.absent, kOne);
  part.rough = cascade_->predict(view_of(table), kOne).values;
  part.ahead = foremost(view_of(part.rough), view_of(part.indptr), stages_.survivors).values;
}

std::vector<double> Plan::evidence_of(const Array2<float>& table) const {
  Array2<double> raw = ranker_->predict(view_of(table), kOne);
  const std::size_t m = raw.shape[0], outputs = raw.shape[1];
  if (outputs == 1) return std::move(raw.values);
  std::vector<double> mean(m, 0.0);
  for (std::size_t pair = 0; pair < m; ++pair) {
    for (std::size_t j = 0; j < outputs; ++j) mean[pair] += raw.values[pair * outputs + j];
    mean[pair] /= static_cast<double>(outputs);
  }
  return mean;
}

}  // namespace metarank
