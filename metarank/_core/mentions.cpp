#include "mentions.h"

#include <cmath>
#include <tuple>
#include <unordered_map>

#include "sparse_rows.h"
#include "rng.h"

namespace metarank {

namespace {

constexpr int64_t kBlock = 16;
// What is left of the score of a name that occurs within longer names alone.
constexpr double kWithin = 0.3;

// The hash of words and one more; that of no word is 1. Never 0.
uint64_t with_word(uint64_t hash, int64_t word) {
  return std::max<uint64_t>(1, splitmix64(hash ^ static_cast<uint64_t>(word)));
}

// A label as the text goes by.
struct Met {
  int64_t count = 0, alone = 0, first = 0, last = 0;
  int32_t form = -1;
  int64_t words = 0;
};

constexpr auto kWidth = static_cast<size_t>(Mention::kColumns);

struct Lists {
  std::vector<int32_t> labels;
  std::vector<std::array<float, kWidth>> columns;
};

}  // namespace

LabelLists Mentions::best(int64_t k) const {
  require(k >= 1, "k must be positive");
  const float* const score = columns.values.data() + static_cast<size_t>(Mention::kScore) * labels.values.size();
  const auto n = static_cast<int64_t>(indptr.values.size()) - 1;
  return ListsOfRows::of(n, 1, n, [&](int64_t, int64_t, ListsOfRows& lists) {
    std::vector<Scored> list;
    for (int64_t i = 0; i < n; ++i) {
      list.clear();
      for (int64_t p = indptr.values[i]; p < indptr.values[i + 1]; ++p) list.push_back({score[p], labels.values[p]});
      keep_best(list, k);
      lists.add(list);
      lists.end_row();
    }
  });
}

NameMentions::NameMentions(int64_t n_labels, Indptr indptr, In1<int64_t> words, Ids labels, Ids kinds)
    : labels_(labels.data(), labels.data() + labels.shape(0)), kinds_(kinds.data(), kinds.data() + kinds.shape(0)) {
  require_indptr(indptr, static_cast<int64_t>(words.shape(0)), "indptr");
  const size_t m = indptr.shape(0) - 1;
  require(labels_.size() == m && kinds_.size() == m, "labels and kinds must be of as many forms as indptr");
  require_in_range(labels, n_labels, "labels");
  size_t size = 16;
  while (size < 2 * words.shape(0) + 2) size *= 2;
  prefixes_.resize(size);
  indptr_.push_back(0);
  phrase_of_form_.resize(m);
  for (size_t form = 0; form < m; ++form) {
    const int64_t* begin = words.data() + indptr.data()[form];
    const int64_t n = indptr.data()[form + 1] - indptr.data()[form];
    require(n > 0, "forms must have words");
    uint64_t hash = 1;
    for (int64_t i = 0; i < n; ++i) {
      hash = with_word(hash, begin[i]);
      Prefix& at = prefixes_[place(hash)];
      at.hash = hash;
      if (i + 1 < n) {
        at.goes_on = true;
        continue;
      }
      if (at.phrase < 0) {
        at.phrase = static_cast<int32_t>(indptr_.size() - 1);
        words_.insert(words_.end(), begin, begin + n);
        indptr_.push_back(static_cast<int64_t>(words_.size()));
      }
      phrase_of_form_[form] = at.phrase;
    }
  }
  const size_t n_phrases = indptr_.size() - 1;
  owner_indptr_.assign(n_phrases + 1, 0);
  for (const int32_t p : phrase_of_form_) ++owner_indptr_[p + 1];
  for (size_t p = 1; p <= n_phrases; ++p) owner_indptr_[p] += owner_indptr_[p - 1];
  owners_.resize(m);
  std::vector<int64_t> next(owner_indptr_.begin(), owner_indptr_.end() - 1);
  for (size_t form = 0; form < m; ++form) owners_[next[phrase_of_form_[form]]++] = static_cast<int32_t>(form);
  std::vector<int32_t> distinct;
  for (size_t p = 0; p < n_phrases; ++p) {
    distinct.clear();
    for (int64_t q = owner_indptr_[p]; q < owner_indptr_[p + 1]; ++q) distinct.push_back(labels_[owners_[q]]);
    std::sort(distinct.begin(), distinct.end());
    n_owners_.push_back(static_cast<int32_t>(std::unique(distinct.begin(), distinct.end()) - distinct.begin()));
  }
}

// Where the words of a hash stand, or would stand.
size_t NameMentions::place(uint64_t hash) const {
  const size_t mask = prefixes_.size() - 1;
  size_t at = hash & mask;
  while (prefixes_[at].hash != 0 && prefixes_[at].hash != hash) at = (at + 1) & mask;
  return at;
}

bool NameMentions::is_phrase(int32_t phrase, const int64_t* words, int64_t n) const {
  const auto p = static_cast<size_t>(phrase);
  return indptr_[p + 1] - indptr_[p] == n && std::equal(words, words + n, words_.data() + indptr_[p]);
}

void NameMentions::occurrences(const int64_t* words, int64_t n, std::vector<Occurrence>& out) const {
  out.clear();
  int64_t furthest = 0;  // where names end that begin before
  for (int64_t i = 0; i < n; ++i) {
    const size_t first = out.size();
    uint64_t hash = 1;
    for (int64_t j = i; j < n; ++j) {
      hash = with_word(hash, words[j]);
      const Prefix& at = prefixes_[place(hash)];
      if (at.phrase >= 0 && is_phrase(at.phrase, words + i, j + 1 - i))
        out.push_back({i, j + 1, at.phrase, furthest < j + 1});
      if (!at.goes_on) break;
    }
    if (out.size() == first) continue;
    const int64_t longest = out.back().stop;
    for (size_t o = first; o < out.size(); ++o) out[o].alone = out[o].alone && out[o].stop == longest;
    furthest = std::max(furthest, longest);
  }
}

Array1<int64_t> NameMentions::texts_with(Indptr indptr, In1<int64_t> words, int n_threads) const {
  require_indptr(indptr, static_cast<int64_t>(words.shape(0)), "indptr");
  const auto n = static_cast<int64_t>(indptr.shape(0)) - 1;
  std::vector<std::vector<int32_t>> phrases(n);  // of each text
  parallel_for(n, n_threads, kBlock, [&](int64_t begin, int64_t end, int) {
    std::vector<Occurrence> occurs;
    for (int64_t i = begin; i < end; ++i) {
      occurrences(words.data() + indptr(i), indptr(i + 1) - indptr(i), occurs);
      for (const Occurrence& o : occurs) phrases[i].push_back(o.phrase);
      std::sort(phrases[i].begin(), phrases[i].end());
      phrases[i].erase(std::unique(phrases[i].begin(), phrases[i].end()), phrases[i].end());
      phrases[i].shrink_to_fit();
    }
  });
  std::vector<int64_t> texts(n_owners_.size(), 0), out;
  for (const auto& of_text : phrases)
    for (const int32_t p : of_text) ++texts[p];
  for (const int32_t p : phrase_of_form_) out.push_back(texts[p]);
  return to_array(std::move(out));
}

namespace {

// An occurrence of a label's form joins what is known of the label; of forms the best is that of the greatest kind,
// then of most words, then the first.
void meet(Met& met, int64_t start, int64_t n_words, int32_t form, const std::vector<int32_t>& kinds) {
  if (met.form < 0) met.first = start;
  met.last = std::max(met.last, start);
  const auto rank = [&](int32_t f, int64_t words) { return std::tuple(kinds[f], words, -f); };
  if (met.form >= 0 && rank(form, n_words) <= rank(met.form, met.words)) return;
  met.form = form;
  met.words = n_words;
}

std::array<float, kWidth> columns_of(const Met& met, int64_t length, int kind, double n_owners, float rarity) {
  const auto of = static_cast<double>(length), first = static_cast<double>(met.first);
  const double alone = static_cast<double>(met.alone) / static_cast<double>(met.count);
  const double score = static_cast<double>(rarity) * std::sqrt(static_cast<double>(met.words)) *
                       (kWithin + (1.0 - kWithin) * alone) / n_owners;
  const double values[kWidth] = {static_cast<double>(met.count),
                                 alone,
                                 1.0 / (1.0 + first),
                                 1.0 - first / of,
                                 static_cast<double>(met.last - met.first) / of,
                                 static_cast<double>(met.words),
                                 static_cast<double>(kind),
                                 n_owners,
                                 rarity,
                                 score};
  std::array<float, kWidth> out;
  std::copy(values, values + kWidth, out.begin());
  return out;
}

}  // namespace

Mentions NameMentions::find(Indptr indptr, In1<int64_t> words, Values rarity, int n_threads) const {
  require_indptr(indptr, static_cast<int64_t>(words.shape(0)), "indptr");
  require(rarity.shape(0) == phrase_of_form_.size(), "rarity must be of all forms");
  const auto n = static_cast<int64_t>(indptr.shape(0)) - 1;
  std::vector<Lists> lists(n);
  parallel_for(n, n_threads, kBlock, [&](int64_t begin, int64_t end, int) {
    std::vector<Occurrence> occurs;
    std::unordered_map<int32_t, Met> by_label;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t length = indptr(i + 1) - indptr(i);
      occurrences(words.data() + indptr(i), length, occurs);
      by_label.clear();
      for (const Occurrence& o : occurs) {
        int32_t previous = -1;  // a label may be written the same way twice
        for (int64_t q = owner_indptr_[o.phrase]; q < owner_indptr_[o.phrase + 1]; ++q) {
          const int32_t label = labels_[owners_[q]];
          Met& met = by_label[label];
          meet(met, o.start, o.stop - o.start, owners_[q], kinds_);
          met.count += label != previous;
          met.alone += label != previous && o.alone;
          previous = label;
        }
      }
      Lists& out = lists[i];
      for (const auto& [label, met] : by_label) out.labels.push_back(label);
      std::sort(out.labels.begin(), out.labels.end());
      for (const int32_t label : out.labels) {
        const Met& met = by_label[label];
        out.columns.push_back(
            columns_of(met, length, kinds_[met.form], n_owners_[phrase_of_form_[met.form]], rarity(met.form)));
      }
    }
  });
  std::vector<int64_t> ends{0};
  for (const Lists& list : lists) ends.push_back(ends.back() + static_cast<int64_t>(list.labels.size()));
  const size_t m = ends.back();
  std::vector<int32_t> labels;
  labels.reserve(m);
  std::vector<float> columns(kWidth * m);
  for (const Lists& list : lists)
    for (size_t j = 0; j < list.labels.size(); ++j) {
      for (size_t c = 0; c < kWidth; ++c) columns[c * m + labels.size()] = list.columns[j][c];
      labels.push_back(list.labels[j]);
    }
  return {to_array(std::move(ends)), to_array(std::move(labels)), to_array(std::move(columns), kWidth, m)};
}

}  // namespace metarank
