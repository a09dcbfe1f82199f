#include "votes.h"

#include <cmath>

#include "lists.h"
#include "sparse_rows.h"
#include "scored_lists.h"

namespace metarank {

Votes::Votes(Indptr row_indptr, Ids row_labels, Ids popular, In1<double> frequency, std::optional<In1<double>> worth,
             const std::optional<CsrView>& text)
    : row_indptr_(row_indptr), row_labels_(row_labels), popular_(popular), frequency_(frequency), worth_(worth) {
  require_indptr(row_indptr, static_cast<int64_t>(row_labels.shape(0)), "row_indptr");
  require(popular.shape(0) == frequency.shape(0), "popular must list every label");
  require(!worth || worth->shape(0) == frequency.shape(0), "worth must have one entry a label");
  require_in_range(popular, n_labels(), "popular");
  // Lists are completed from it until they are full.
  std::vector<bool> listed(popular.shape(0), false);
  for (size_t i = 0; i < listed.size(); ++i) listed[popular(i)] = true;
  require(std::find(listed.begin(), listed.end(), false) == listed.end(), "popular must list every label");
  require_finite(frequency, "frequency");
  if (worth) require_finite(*worth, "worth");
  require_in_range(row_labels, n_labels(), "row_labels");
  if (!text) return;
  text_ = require_csr(*text, "text");
  n_words_ = text->n_columns;
  require(text_->n_rows == n_labels(), "text must have one row a label");
}

Array2<float> Votes::columns(In2<int32_t> rows, In2<float> weights, Indptr indptr, Ids labels,
                             const std::vector<int>& ks, int n_threads) const {
  check(rows, weights);
  require_pairs(indptr, labels, rows.shape(0), n_labels());
  const size_t m = labels.shape(0);
  std::vector<float> out(2 * ks.size() * m);
  std::vector<size_t> by_k(ks.size());
  std::iota(by_k.begin(), by_k.end(), 0);
  std::stable_sort(by_k.begin(), by_k.end(), [&](size_t a, size_t b) { return ks[a] < ks[b]; });
  parallel_for(rows.shape(0), n_threads, 16, [&](int64_t begin, int64_t end, int) {
    std::vector<double> votes, weight;  // by place in the list
    for (int64_t q = begin; q < end; ++q) {
      const int32_t *list = labels.data() + indptr(q), *list_end = labels.data() + indptr(q + 1);
      votes.assign(list_end - list, 0.0);
      weight.assign(votes.size(), 0.0);
      Total total;
      // One run over the neighbours: the first k1 of them, then on to the first k2, ...
      int64_t counted = 0;
      for (const size_t c : by_k) {
        for_each(rows, weights, q, counted, ks[c], total, [&](int32_t label, double w) {
          const int32_t* at = std::lower_bound(list, list_end, label);
          if (at == list_end || *at != label) return;
          votes[at - list] += 1.0;
          weight[at - list] += w;
        });
        counted = ks[c];
        if (total.voters == 0) continue;
        float* column = out.data() + 2 * c * m + indptr(q);
        for (size_t p = 0; p < votes.size(); ++p) {
          column[p] = static_cast<float>(votes[p] / static_cast<double>(total.voters));
          column[m + p] = static_cast<float>(weight[p] / total.weight * worth(list[p]));
        }
      }
    }
  });
  return to_array(std::move(out), 2 * ks.size(), m);
}

Array1<float> Votes::kin_by_name(In2<int32_t> rows, In2<float> weights, Indptr indptr, Ids labels,
                                 int n_threads) const {
  require(text_.has_value(), "votes by name need the labels' text");
  require_pairs(indptr, labels, rows.shape(0), n_labels());
  std::vector<float> out(labels.shape(0), 0.0F);
  const auto for_each_word = [&](int32_t label, const auto& visit) {
    const SparseRow words = text_->row(label);
    for (int64_t j = 0; j < words.size; ++j) visit(words.index[j], static_cast<double>(words.value[j]));
  };
  for_each_query(rows, weights, n_threads, [&](int64_t q, Sums& sums) {
    if (sums.voted.empty()) return;
    std::vector<double>& profile = sums.by_word;
    profile.resize(n_words_);
    for (const int32_t label : sums.voted)
      for_each_word(label, [&](int32_t word, double v) { profile[word] += sums.weight[label] * v; });
    for (int64_t pair = indptr(q); pair < indptr(q + 1); ++pair) {
      const double weight = sums.weight[labels(pair)];
      double kin = 0.0;
      for_each_word(labels(pair), [&](int32_t word, double v) { kin += v * (profile[word] - weight * v); });
      out[pair] = static_cast<float>(kin / sums.total.weight);
    }
    for (const int32_t label : sums.voted) for_each_word(label, [&](int32_t word, double) { profile[word] = 0.0; });
  });
  return to_array(std::move(out));
}

TopLabels Votes::shortlist(In2<int32_t> rows, In2<float> weights, double tie, int k, int n_threads) const {
  require(k >= 1 && k <= n_labels(), "k must lie in [1, n_labels]");
  const size_t n = rows.shape(0), width = k;
  std::vector<int32_t> labels(n * width);
  std::vector<float> scores(n * width);
  for_each_query(rows, weights, n_threads, [&](int64_t q, Sums& sums) {
    std::vector<Scored> list;
    const auto add = [&](int32_t label) {
      const double share = sums.total.weight > 0.0 ? sums.weight[label] / sums.total.weight : 0.0;
      list.push_back({share * worth(label) + tie * frequency_(label), label});
    };
    for (const int32_t label : sums.voted) add(label);
    for (size_t l = 0; list.size() < width; ++l)
      if (sums.weight[popular_(l)] == 0.0) add(popular_(l));
    keep_best(list, k);
    for (size_t j = 0; j < width; ++j) {
      labels[q * width + j] = list[j].label;
      scores[q * width + j] = static_cast<float>(list[j].score);
    }
  });
  return {to_array(std::move(labels), n, width), to_array(std::move(scores), n, width)};
}

void Votes::check(const In2<int32_t>& rows, const In2<float>& weights) const {
  require(rows.shape(0) == weights.shape(0) && rows.shape(1) == weights.shape(1),
          "neighbours and weights must have the same shape");
  for (size_t i = 0; i < rows.size(); ++i)
    require(rows.data()[i] < static_cast<int64_t>(row_indptr_.shape(0)) - 1, "neighbours must be row numbers");
  for (size_t i = 0; i < weights.size(); ++i) require(std::isfinite(weights.data()[i]), "weights must be finite");
}

template <typename Visit>
void Votes::for_each(const In2<int32_t>& rows, const In2<float>& weights, int64_t query, int64_t first, int64_t k,
                     Total& total, const Visit& visit) const {
  for (int64_t j = first; j < std::min<int64_t>(k, rows.shape(1)); ++j) {
    const int32_t row = rows(query, j);
    const double weight = weights(query, j);
    if (row < 0 || !(weight > 0.0)) continue;
    for (int64_t p = row_indptr_(row); p < row_indptr_(row + 1); ++p) visit(row_labels_(p), weight);
    ++total.voters;
    total.weight += weight;
  }
}

template <typename Each>
void Votes::for_each_query(const In2<int32_t>& rows, const In2<float>& weights, int n_threads, const Each& each) const {
  check(rows, weights);
  parallel_for(rows.shape(0), n_threads, 16, [&](int64_t begin, int64_t end, int) {
    const auto sums = pool_.take();
    sums->weight.resize(n_labels());
    for (int64_t q = begin; q < end; ++q) {
      for_each(rows, weights, q, 0, rows.shape(1), sums->total, [&](int32_t label, double w) {
        if (sums->weight[label] == 0.0) sums->voted.push_back(label);
        sums->weight[label] += w;
      });
      each(q, *sums);
      sums->clear();
    }
  });
}

}  // namespace metarank
