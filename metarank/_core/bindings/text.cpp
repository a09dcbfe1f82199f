// Texts: scores of vectors, labels by their names.
#include "../dense_scores.h"
#include "../mentions.h"
#include "../names.h"
#include "bindings.h"

namespace metarank::bindings {

void bind_text(nb::module_& m) {
  bind(m, "vector_scores", &vector_scores, {"Q", "F", "bias", "n_threads"});
  bind(m, "vector_scores_of_pairs", &vector_scores_of_pairs, {"Q", "F", "bias", "indptr", "labels", "n_threads"});

  nb::class_<LabelText> names(m, "LabelText",
                              "The labels' texts, a canonical CSR matrix (L, d), and their postings by word.");
  bind_init(names, [](LabelText* self, CsrView text) { new (self) LabelText(text); }, {"text"});
  bind(names, "evidence", &LabelText::evidence, {"X", "indptr", "labels", "n_threads"});
  bind(names, "weighed", &LabelText::weighed, {"X", "indptr", "labels", "present", "absent", "n_threads"});
  bind(names, "held", &LabelText::held, {"X", "n_threads"});
  bind(names, "shortlist", &LabelText::shortlist, {"X", "k", "n_threads"});

  nb::class_<NameMentions> mentions(m, "NameMentions", "Names of labels, looked for in texts word by word.");
  bind_init(mentions,
            [](NameMentions* self, int64_t n_labels, Indptr indptr, In1<int64_t> words, Ids labels, Ids kinds) {
              new (self) NameMentions(n_labels, indptr, words, labels, kinds);
            },
            {"n_labels", "indptr", "words", "labels", "kinds"});
  bind(mentions, "texts_with", &NameMentions::texts_with, {"indptr", "words", "n_threads"});
  bind(mentions, "find", &NameMentions::find, {"indptr", "words", "rarity", "n_threads"});

  nb::class_<Mentions> met(m, "Mentions", "Labels that texts mention.");
  met.def(
      "columns",
      [](const Mentions& self) {
        Mentions copy = self;
        return std::tuple(std::move(copy.indptr), std::move(copy.labels), std::move(copy.columns));
      },
      "(indptr, labels, columns): the columns as of `metarank::Mention`.");
  bind(met, "best", &Mentions::best, {"k"});
}

}  // namespace metarank::bindings
