#include "votes.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>

#include "lists.h"
#include "pairs.h"
#include "parallel.h"

namespace metarank {

Votes::Votes(const In1<std::int64_t>& row_indptr, const In1<std::int32_t>& row_labels, const In1<std::int32_t>& popular,
      const In1<double>& frequency, const std::optional<In1<double>>& worth, const std::optional<LabelWords>& text)
    : row_indptr_(row_indptr),
      row_labels_(row_labels),
      popular_(popular),
      frequency_(frequency),
      worth_(worth),
      text_(text) {
  require_indptr(row_indptr, static_cast<std::int64_t>(row_labels.shape(0)), "row_indptr");
  require(popular.shape(0) == frequency.shape(0), "popular must list every label");
  require(!worth || worth->shape(0) == frequency.shape(0), "worth must have one entry a label");
  require_in_range(popular, n_labels(), "popular");
  // Lists are completed from it until they are full.
  std::vector<bool> listed(popular.shape(0), false);
  for (std::size_t i = 0; i < listed.size(); ++i) listed[static_cast<std::size_t>(popular.data()[i])] = true;
  require(std::find(listed.begin(), listed.end(), false) == listed.end(), "popular must list every label");
  require_finite(frequency, "frequency");
  if (worth) require_finite(*worth, "worth");
  require_in_range(row_labels, n_labels(), "row_labels");
  if (!text) return;
  require(static_cast<std::int64_t>(text->indptr.shape(0)) == n_labels() + 1, "text must have one row a label");
  require_indptr(text->indptr, static_cast<std::int64_t>(text->words.shape(0)), "text.indptr");
  require(text->words.shape(0) == text->values.shape(0), "text.indices and .data must have the same length");
  require_in_range(text->words, text->n_words, "text.indices");
}

Array2<float> Votes::columns(const In2<std::int32_t>& rows, const In2<float>& weights,
                             const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels,
                             const std::vector<int>& ks, int n_threads) const {
  check(rows, weights);
  require(indptr.shape(0) == rows.shape(0) + 1, "candidates must have one list a row of X");
  require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "candidates.indptr");
  require_in_range(labels, n_labels(), "candidates.labels");
  const auto n = static_cast<std::int64_t>(rows.shape(0)), m = static_cast<std::int64_t>(labels.shape(0));
  std::vector<float> out(2 * ks.size() * static_cast<std::size_t>(m));
  std::vector<std::size_t> by_k(ks.size());
  std::iota(by_k.begin(), by_k.end(), 0);
  std::stable_sort(by_k.begin(), by_k.end(), [&](std::size_t a, std::size_t b) { return ks[a] < ks[b]; });
  parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<double> votes, weight;  // by place in the list
    for (std::int64_t q = begin; q < end; ++q) {
      const std::int64_t first = indptr.data()[q];
      const std::int32_t *list = labels.data() + first, *list_end = labels.data() + indptr.data()[q + 1];
      votes.assign(static_cast<std::size_t>(list_end - list), 0.0);
      weight.assign(votes.size(), 0.0);
      Total total;
      // One run over the neighbours: the first k1 of them, then on to the first k2, ...
      std::int64_t counted = 0;
      for (const std::size_t c : by_k) {
        for_each(rows, weights, q, counted, ks[c], total, [&](std::int32_t label, double w) {
          const std::int32_t* at = std::lower_bound(list, list_end, label);
          if (at == list_end || *at != label) return;
          votes[static_cast<std::size_t>(at - list)] += 1.0;
          weight[static_cast<std::size_t>(at - list)] += w;
        });
        counted = ks[c];
        if (total.voters == 0) continue;
        float* column = out.data() + 2 * static_cast<std::int64_t>(c) * m + first;
        for (std::size_t p = 0; p < votes.size(); ++p) {
          column[p] = static_cast<float>(votes[p] / static_cast<double>(total.voters));
          column[static_cast<std::size_t>(m) + p] = static_cast<float>(weight[p] / total.weight * worth(list[p]));
        }
      }
    }
  });
  return to_array(std::move(out), 2 * ks.size(), static_cast<std::size_t>(m));
}

Array1<float> Votes::kin_by_name(const In2<std::int32_t>& rows, const In2<float>& weights,
                                 const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels,
                                 int n_threads) const {
  require(n_threads >= 1, "n_threads must be positive");
  require(text_.has_value(), "votes by name need the labels' text");
  check(rows, weights);
  require(indptr.shape(0) == rows.shape(0) + 1, "candidates must have one list a row of X");
  require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "candidates.indptr");
  require_in_range(labels, n_labels(), "candidates.labels");
  const auto n = static_cast<std::int64_t>(rows.shape(0)), n_neighbors = static_cast<std::int64_t>(rows.shape(1));
  std::vector<float> out(labels.shape(0), 0.0F);
  const auto for_each_word = [&](std::int32_t label, const auto& visit) {
    for (std::int64_t p = text_->indptr.data()[label]; p < text_->indptr.data()[label + 1]; ++p)
      visit(static_cast<std::size_t>(text_->words.data()[p]), static_cast<double>(text_->values.data()[p]));
  };
  parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
    auto by_label = pool_.take([] { return std::make_unique<std::vector<double>>(); });
    auto by_word = word_pool_.take([] { return std::make_unique<std::vector<double>>(); });
    by_label->resize(static_cast<std::size_t>(n_labels()));
    by_word->resize(static_cast<std::size_t>(text_->n_words));
    double *weight_of = by_label->data(), *profile = by_word->data();
    std::vector<std::int32_t> voted;
    for (std::int64_t q = begin; q < end; ++q) {
      voted.clear();
      Total total;
      for_each(rows, weights, q, 0, n_neighbors, total, [&](std::int32_t label, double w) {
        if (weight_of[label] == 0.0) voted.push_back(label);
        weight_of[label] += w;
      });
      if (voted.empty()) continue;
      for (const std::int32_t label : voted)
        for_each_word(label, [&](std::size_t word, double v) { profile[word] += weight_of[label] * v; });
      for (std::int64_t pair = indptr.data()[q]; pair < indptr.data()[q + 1]; ++pair) {
        const std::int32_t label = labels.data()[pair];
        double kin = 0.0;
        for_each_word(label, [&](std::size_t word, double v) { kin += v * (profile[word] - weight_of[label] * v); });
        out[static_cast<std::size_t>(pair)] = static_cast<float>(kin / total.weight);
      }
      for (const std::int32_t label : voted) {
        for_each_word(label, [&](std::size_t word, double) { profile[word] = 0.0; });
        weight_of[label] = 0.0;
      }
    }
    word_pool_.give_back(std::move(by_word));
    pool_.give_back(std::move(by_label));
  });
  return to_array(std::move(out));
}

TopLabels Votes::shortlist(const In2<std::int32_t>& rows, const In2<float>& weights, double tie, int k,
                           int n_threads) const {
  check(rows, weights);
  require(k >= 1 && k <= n_labels(), "k must lie in [1, n_labels]");
  const auto n = static_cast<std::int64_t>(rows.shape(0)), n_neighbors = static_cast<std::int64_t>(rows.shape(1));
  const auto width = static_cast<std::size_t>(k);
  std::vector<std::int32_t> labels(static_cast<std::size_t>(n) * width);
  std::vector<float> scores(labels.size());
  parallel_for(n, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
    auto scratch = pool_.take([] { return std::make_unique<std::vector<double>>(); });
    std::vector<double>& weight_of = *scratch;
    weight_of.resize(static_cast<std::size_t>(n_labels()));
    struct Scored {
      double score;
      std::int32_t label;
    };
    std::vector<Scored> list;
    std::vector<std::int32_t> voted;
    for (std::int64_t q = begin; q < end; ++q) {
      voted.clear();
      list.clear();
      Total total;
      for_each(rows, weights, q, 0, n_neighbors, total, [&](std::int32_t label, double w) {
        double& sum = weight_of[static_cast<std::size_t>(label)];
        if (sum == 0.0) voted.push_back(label);
        sum += w;
      });
      const auto scored = [&](std::int32_t label) {
        const auto l = static_cast<std::size_t>(label);
        const double share = total.weight > 0.0 ? weight_of[l] / total.weight : 0.0;
        return Scored{share * worth(label) + tie * frequency_.data()[l], label};
      };
      for (const std::int32_t label : voted) list.push_back(scored(label));
      if (list.size() > width) {
        std::nth_element(list.begin(), list.begin() + k, list.end(), [](const Scored& a, const Scored& b) {
          return a.score > b.score || (a.score == b.score && a.label < b.label);
        });
        list.resize(width);
      }
      for (std::int64_t l = 0; list.size() < width; ++l)
        if (weight_of[static_cast<std::size_t>(popular_.data()[l])] == 0.0)
          list.push_back(scored(popular_.data()[l]));
      std::sort(list.begin(), list.end(), [](const Scored& a, const Scored& b) { return a.label < b.label; });
      for (std::size_t j = 0; j < width; ++j) {
        labels[static_cast<std::size_t>(q) * width + j] = list[j].label;
        scores[static_cast<std::size_t>(q) * width + j] = static_cast<float>(list[j].score);
      }
      for (const std::int32_t label : voted) weight_of[static_cast<std::size_t>(label)] = 0.0;
    }
    pool_.give_back(std::move(scratch));
  });
  return std::make_tuple(to_array(std::move(labels), static_cast<std::size_t>(n), width),
                        to_array(std::move(scores), static_cast<std::size_t>(n), width));
}

void Votes::check(const In2<std::int32_t>& rows, const In2<float>& weights) const {
  require(rows.shape(0) == weights.shape(0) && rows.shape(1) == weights.shape(1),
          "neighbours and weights must have the same shape");
  for (std::size_t i = 0; i < rows.size(); ++i)
    require(rows.data()[i] < static_cast<std::int64_t>(row_indptr_.shape(0)) - 1, "neighbours must be row numbers");
  for (std::size_t i = 0; i < weights.size(); ++i) require(std::isfinite(weights.data()[i]), "weights must be finite");
}

template <typename Visit>
void Votes::for_each(const In2<std::int32_t>& rows, const In2<float>& weights, std::int64_t query, std::int64_t first,
                     std::int64_t k, Total& total, const Visit& visit) const {
  const auto width = static_cast<std::int64_t>(rows.shape(1));
  for (std::int64_t j = first; j < std::min(k, width); ++j) {
    const std::int32_t row = rows.data()[query * width + j];
    const double weight = weights.data()[query * width + j];
    if (row < 0 || !(weight > 0.0)) continue;
    for (std::int64_t p = row_indptr_.data()[row]; p < row_indptr_.data()[row + 1]; ++p)
      visit(row_labels_.data()[p], weight);
    ++total.voters;
    total.weight += weight;
  }
}

}  // namespace metarank
