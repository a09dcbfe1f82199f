// Where do names of labels occur in texts, word by word?
//
// Words are numbers, equal for equal words. A name is mentioned where its words follow one another in a text.
#pragma once

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "arrays.h"

namespace metarank {

// What is told of a mentioned label, a row of `NameMentions::find` each.
enum class Mention {
  kCount,   // occurrences of its forms
  kAlone,   // share of these that are not within a longer name's
  kStart,   // 1 / (1 + words before the first)
  kPlace,   // 1 - words before the first / words of the text
  kSpread,  // words from the first to the last / words of the text
  kWords,   // words of its best form that occurs
  kName,    // what kind of form that is
  kLabels,  // labels that share this form
  kRarity,  // the form's rarity
  kScore,   // how far the text seems to be about the label, by all these
  kColumns
};

// Labels that texts mention, ascending, and (kColumns, m) of them.
struct Mentions {
  Array1<std::int64_t> indptr;
  Array1<std::int32_t> labels;
  Array2<float> columns;

  In1<float> column(Mention which) const;
  // (indptr, labels, scores) of the k of the highest score in each text, ascending; ties go to the smaller label.
  std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<float>> best(std::int64_t k) const;
};

class NameMentions {
 public:
  // The forms of names: words of each, its label, and its kind (greater is better).
  NameMentions(std::int64_t n_labels, const In1<std::int64_t>& indptr, const In1<std::int64_t>& words,
               const In1<std::int32_t>& labels, const In1<std::int32_t>& kinds);

  std::int64_t n_forms() const { return static_cast<std::int64_t>(phrase_of_form_.size()); }

  // Of each form, the number of texts that mention it.
  Array1<std::int64_t> texts_with(const In1<std::int64_t>& indptr, const In1<std::int64_t>& words,
                                  int n_threads) const;

  // `rarity` is of the forms. Of several forms of a label that occur the best is that of the greatest kind, then of
  // most words, then the first.
  Mentions find(const In1<std::int64_t>& indptr, const In1<std::int64_t>& words, const In1<float>& rarity,
                int n_threads) const;

 private:
  // Words from the beginning of some name.
  struct Prefix {
    std::uint64_t hash = 0;  // of its words; 0: none
    std::int32_t phrase = -1;
    bool goes_on = false;  // in a longer one
  };
  struct Occurrence {
    std::int64_t start, stop;
    std::int32_t phrase;
    bool alone;
  };

  const Prefix* find_prefix(std::uint64_t hash) const;
  Prefix& prefix(std::uint64_t hash);
  bool is_phrase(std::int32_t phrase, const std::int64_t* words, std::int64_t n) const;
  // All places where a name occurs, by their starts, longer ones last.
  void occurrences(const std::int64_t* words, std::int64_t n, std::vector<Occurrence>& out) const;

  std::int64_t n_labels_;
  std::vector<Prefix> prefixes_;               // by hash, a power of two of them
  std::vector<std::int64_t> indptr_, words_;   // of distinct phrases
  std::vector<std::int32_t> phrase_of_form_;
  std::vector<std::int64_t> owner_indptr_;     // of each phrase the forms that are written so
  std::vector<std::int32_t> owners_;
  std::vector<std::int32_t> labels_, kinds_;   // of forms
  std::vector<std::int32_t> n_owners_;         // of each phrase, its distinct labels
};

}  // namespace metarank
