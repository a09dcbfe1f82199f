#include "mentions.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <unordered_map>

#include "parallel.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlock = 16;
// What is left of the score of a name that occurs within longer names alone.
constexpr double kWithin = 0.3;

// The hash of words and one more; that of no word is 1. Never 0.
std::uint64_t with_word(std::uint64_t hash, std::int64_t word) {
  std::uint64_t h = (hash ^ static_cast<std::uint64_t>(word)) + 0x9E3779B97F4A7C15ULL;
  h = (h ^ (h >> 30)) * 0xBF58476D1CE4E5B9ULL;
  h = (h ^ (h >> 27)) * 0x94D049BB133111EBULL;
  h ^= h >> 31;
  return h == 0 ? 1 : h;
}

void check_texts(const In1<std::int64_t>& indptr, const In1<std::int64_t>& words) {
  require_indptr(indptr, static_cast<std::int64_t>(words.shape(0)), "indptr");
}

// A label as the text goes by.
struct Found {
  std::int64_t count = 0, alone = 0, first = 0, last = 0;
  std::int32_t form = -1;
  std::int64_t words = 0;
};

struct Lists {
  std::vector<std::int32_t> labels;
  std::vector<std::array<float, static_cast<std::size_t>(Mention::kColumns)>> columns;
};

}  // namespace

In1<float> Mentions::column(Mention which) const {
  const std::size_t m = labels.values.size();
  return {columns.values.data() + static_cast<std::size_t>(which) * m, {m}};
}

std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<float>> Mentions::best(std::int64_t k) const {
  require(k >= 1, "k must be positive");
  const In1<float> score = column(Mention::kScore);
  std::vector<std::int64_t> ends{0}, order;
  std::vector<std::int32_t> own;
  std::vector<float> scores;
  for (std::size_t i = 0; i + 1 < indptr.values.size(); ++i) {
    const std::int64_t first = indptr.values[i], stop = indptr.values[i + 1];
    order.resize(static_cast<std::size_t>(stop - first));
    std::iota(order.begin(), order.end(), first);
    if (stop - first > k) {
      std::nth_element(order.begin(), order.begin() + k, order.end(), [&](std::int64_t a, std::int64_t b) {
        return score(a) != score(b) ? score(a) > score(b) : a < b;
      });
      order.resize(static_cast<std::size_t>(k));
      std::sort(order.begin(), order.end());
    }
    for (const std::int64_t p : order) {
      own.push_back(labels.values[static_cast<std::size_t>(p)]);
      scores.push_back(score(p));
    }
    ends.push_back(static_cast<std::int64_t>(own.size()));
  }
  return {to_array(std::move(ends)), to_array(std::move(own)), to_array(std::move(scores))};
}

NameMentions::NameMentions(std::int64_t n_labels, const In1<std::int64_t>& indptr, const In1<std::int64_t>& words,
                           const In1<std::int32_t>& labels, const In1<std::int32_t>& kinds)
    : n_labels_(n_labels),
      labels_(labels.data(), labels.data() + labels.shape(0)),
      kinds_(kinds.data(), kinds.data() + kinds.shape(0)) {
  check_texts(indptr, words);
  const std::size_t m = indptr.shape(0) - 1;
  require(labels_.size() == m && kinds_.size() == m, "labels and kinds must be of as many forms as indptr");
  for (const std::int32_t label : labels_) require(label >= 0 && label < n_labels, "labels must lie in [0, L)");
  std::size_t size = 16;
  while (size < 2 * words.shape(0) + 2) size *= 2;
  prefixes_.resize(size);
  indptr_.push_back(0);
  phrase_of_form_.resize(m);
  for (std::size_t form = 0; form < m; ++form) {
    const std::int64_t* begin = words.data() + indptr.data()[form];
    const std::int64_t n = indptr.data()[form + 1] - indptr.data()[form];
    require(n > 0, "forms must have words");
    std::uint64_t hash = 1;
    for (std::int64_t i = 0; i < n; ++i) {
      hash = with_word(hash, begin[i]);
      Prefix& at = prefix(hash);
      if (i + 1 < n) {
        at.goes_on = true;
        continue;
      }
      if (at.phrase < 0) {
        at.phrase = static_cast<std::int32_t>(indptr_.size() - 1);
        words_.insert(words_.end(), begin, begin + n);
        indptr_.push_back(static_cast<std::int64_t>(words_.size()));
      }
      phrase_of_form_[form] = at.phrase;
    }
  }
  const std::size_t n_phrases = indptr_.size() - 1;
  owner_indptr_.assign(n_phrases + 1, 0);
  for (const std::int32_t p : phrase_of_form_) ++owner_indptr_[static_cast<std::size_t>(p) + 1];
  for (std::size_t p = 1; p <= n_phrases; ++p) owner_indptr_[p] += owner_indptr_[p - 1];
  owners_.resize(m);
  std::vector<std::int64_t> next(owner_indptr_.begin(), owner_indptr_.end() - 1);
  for (std::size_t form = 0; form < m; ++form)
    owners_[static_cast<std::size_t>(next[static_cast<std::size_t>(phrase_of_form_[form])]++)] =
        static_cast<std::int32_t>(form);
  n_owners_.resize(n_phrases);
  std::vector<std::int32_t> own;
  for (std::size_t p = 0; p < n_phrases; ++p) {
    own.clear();
    for (std::int64_t q = owner_indptr_[p]; q < owner_indptr_[p + 1]; ++q)
      own.push_back(labels_[static_cast<std::size_t>(owners_[static_cast<std::size_t>(q)])]);
    std::sort(own.begin(), own.end());
    n_owners_[p] = static_cast<std::int32_t>(std::unique(own.begin(), own.end()) - own.begin());
  }
}

const NameMentions::Prefix* NameMentions::find_prefix(std::uint64_t hash) const {
  const std::size_t mask = prefixes_.size() - 1;
  for (std::size_t at = hash & mask; prefixes_[at].hash != 0; at = (at + 1) & mask)
    if (prefixes_[at].hash == hash) return &prefixes_[at];
  return nullptr;
}

NameMentions::Prefix& NameMentions::prefix(std::uint64_t hash) {
  const std::size_t mask = prefixes_.size() - 1;
  std::size_t at = hash & mask;
  while (prefixes_[at].hash != 0 && prefixes_[at].hash != hash) at = (at + 1) & mask;
  prefixes_[at].hash = hash;
  return prefixes_[at];
}

bool NameMentions::is_phrase(std::int32_t phrase, const std::int64_t* words, std::int64_t n) const {
  const auto p = static_cast<std::size_t>(phrase);
  return indptr_[p + 1] - indptr_[p] == n && std::equal(words, words + n, words_.data() + indptr_[p]);
}

void NameMentions::occurrences(const std::int64_t* words, std::int64_t n, std::vector<Occurrence>& out) const {
  out.clear();
  std::int64_t furthest = 0;  // where names end that begin before
  for (std::int64_t i = 0; i < n; ++i) {
    const std::size_t first = out.size();
    std::uint64_t hash = 1;
    for (std::int64_t j = i; j < n; ++j) {
      hash = with_word(hash, words[j]);
      const Prefix* at = find_prefix(hash);
      if (at == nullptr) break;
      if (at->phrase >= 0 && is_phrase(at->phrase, words + i, j + 1 - i))
        out.push_back({i, j + 1, at->phrase, furthest < j + 1});
      if (!at->goes_on) break;
    }
    if (out.size() == first) continue;
    const std::int64_t longest = out.back().stop;
    for (std::size_t o = first; o < out.size(); ++o) out[o].alone = out[o].alone && out[o].stop == longest;
    furthest = std::max(furthest, longest);
  }
}

Array1<std::int64_t> NameMentions::texts_with(const In1<std::int64_t>& indptr, const In1<std::int64_t>& words,
                                              int n_threads) const {
  check_texts(indptr, words);
  require(n_threads >= 1, "n_threads must be positive");
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  std::vector<std::vector<std::int32_t>> held(static_cast<std::size_t>(n));
  parallel_for(n, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<Occurrence> found;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = indptr.data()[i];
      occurrences(words.data() + first, indptr.data()[i + 1] - first, found);
      std::vector<std::int32_t>& own = held[static_cast<std::size_t>(i)];
      for (const Occurrence& o : found) own.push_back(o.phrase);
      std::sort(own.begin(), own.end());
      own.erase(std::unique(own.begin(), own.end()), own.end());
      own.shrink_to_fit();
    }
  });
  std::vector<std::int64_t> texts(n_owners_.size(), 0);
  for (const auto& own : held)
    for (const std::int32_t p : own) ++texts[static_cast<std::size_t>(p)];
  std::vector<std::int64_t> out;
  out.reserve(phrase_of_form_.size());
  for (const std::int32_t p : phrase_of_form_) out.push_back(texts[static_cast<std::size_t>(p)]);
  return to_array(std::move(out));
}

Mentions NameMentions::find(const In1<std::int64_t>& indptr, const In1<std::int64_t>& words, const In1<float>& rarity,
                            int n_threads) const {
  check_texts(indptr, words);
  require(n_threads >= 1, "n_threads must be positive");
  require(rarity.shape(0) == phrase_of_form_.size(), "rarity must be of all forms");
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  std::vector<Lists> lists(static_cast<std::size_t>(n));
  parallel_for(n, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<Occurrence> occurs;
    std::unordered_map<std::int32_t, Found> by_label;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t first = indptr.data()[i], length = indptr.data()[i + 1] - first;
      occurrences(words.data() + first, length, occurs);
      by_label.clear();
      for (const Occurrence& o : occurs) {
        const auto p = static_cast<std::size_t>(o.phrase);
        std::int32_t previous = -1;  // a label may be written the same way twice
        for (std::int64_t q = owner_indptr_[p]; q < owner_indptr_[p + 1]; ++q) {
          const std::int32_t form = owners_[static_cast<std::size_t>(q)];
          const std::int32_t label = labels_[static_cast<std::size_t>(form)];
          Found& own = by_label[label];
          if (own.count == 0) own.first = o.start;
          if (label != previous) {
            ++own.count;
            own.alone += o.alone ? 1 : 0;
          }
          previous = label;
          own.last = std::max(own.last, o.start);
          const std::int64_t n_words = o.stop - o.start;
          const auto kind = [&](std::int32_t f) { return kinds_[static_cast<std::size_t>(f)]; };
          const bool better = own.form < 0 || kind(form) > kind(own.form) ||
                              (kind(form) == kind(own.form) &&
                               (n_words > own.words || (n_words == own.words && form < own.form)));
          if (better) {
            own.form = form;
            own.words = n_words;
          }
        }
      }
      Lists& out = lists[static_cast<std::size_t>(i)];
      for (const auto& [label, own] : by_label) out.labels.push_back(label);
      std::sort(out.labels.begin(), out.labels.end());
      out.columns.reserve(out.labels.size());
      for (const std::int32_t label : out.labels) {
        const Found& own = by_label[label];
        const auto form = static_cast<std::size_t>(own.form);
        const auto of = static_cast<double>(length);
        const double alone = static_cast<double>(own.alone) / static_cast<double>(own.count);
        const double n_owners = n_owners_[static_cast<std::size_t>(phrase_of_form_[form])];
        const double score = static_cast<double>(rarity.data()[form]) * std::sqrt(static_cast<double>(own.words)) *
                             (kWithin + (1.0 - kWithin) * alone) / n_owners;
        out.columns.push_back({
            static_cast<float>(own.count),
            static_cast<float>(alone),
            static_cast<float>(1.0 / (1.0 + static_cast<double>(own.first))),
            static_cast<float>(1.0 - static_cast<double>(own.first) / of),
            static_cast<float>(static_cast<double>(own.last - own.first) / of),
            static_cast<float>(own.words),
            static_cast<float>(kinds_[form]),
            static_cast<float>(n_owners),
            rarity.data()[form],
            static_cast<float>(score),
        });
      }
    }
  });
  std::vector<std::int64_t> ends(static_cast<std::size_t>(n) + 1, 0);
  for (std::size_t i = 0; i < lists.size(); ++i)
    ends[i + 1] = ends[i] + static_cast<std::int64_t>(lists[i].labels.size());
  const auto m = static_cast<std::size_t>(ends.back());
  constexpr auto kWidth = static_cast<std::size_t>(Mention::kColumns);
  std::vector<std::int32_t> labels;
  labels.reserve(m);
  std::vector<float> columns(kWidth * m);
  for (const Lists& own : lists)
    for (std::size_t j = 0; j < own.labels.size(); ++j) {
      for (std::size_t c = 0; c < kWidth; ++c) columns[c * m + labels.size()] = own.columns[j][c];
      labels.push_back(own.labels[j]);
    }
  return {to_array(std::move(ends)), to_array(std::move(labels)), to_array(std::move(columns), kWidth, m)};
}

}  // namespace metarank
