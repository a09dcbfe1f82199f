// Where do names of labels occur in texts, word by word?
//
// Words are numbers, equal for equal words. A name is mentioned where its words follow one another in a text.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"
#include "scored_lists.h"

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
  Array1<int64_t> indptr;
  Array1<int32_t> labels;
  Array2<float> columns;

  // The k of the highest score in each text, ascending; ties go to the smaller label.
  LabelLists best(int64_t k) const;
};

class NameMentions {
 public:
  // The forms of names: words of each, its label, and its kind (greater is better).
  NameMentions(int64_t n_labels, Indptr indptr, In1<int64_t> words, Ids labels, Ids kinds);

  int64_t n_forms() const { return static_cast<int64_t>(phrase_of_form_.size()); }

  // Of each form, the number of texts that mention it.
  Array1<int64_t> texts_with(Indptr indptr, In1<int64_t> words, int n_threads) const;

  // `rarity` is of the forms.
  Mentions find(Indptr indptr, In1<int64_t> words, Values rarity, int n_threads) const;

 private:
  // Words from the beginning of some name.
  struct Prefix {
    uint64_t hash = 0;  // of its words; 0: none
    int32_t phrase = -1;
    bool goes_on = false;  // in a longer one
  };
  struct Occurrence {
    int64_t start, stop;
    int32_t phrase;
    bool alone;
  };

  size_t place(uint64_t hash) const;
  bool is_phrase(int32_t phrase, const int64_t* words, int64_t n) const;
  // All places where a name occurs, by their starts, longer ones last.
  void occurrences(const int64_t* words, int64_t n, std::vector<Occurrence>& out) const;

  std::vector<Prefix> prefixes_;               // by hash, a power of two of them
  std::vector<int64_t> indptr_, words_;   // of distinct phrases
  std::vector<int32_t> phrase_of_form_;
  std::vector<int64_t> owner_indptr_;     // of each phrase the forms that are written so
  std::vector<int32_t> owners_;
  std::vector<int32_t> labels_, kinds_;   // of forms
  std::vector<int32_t> n_owners_;         // of each phrase, its distinct labels
};

}  // namespace metarank
