// Texts: encoders, scores of vectors, labels by their names.
#include "../mentions.h"
#include "../names.h"
#include "../text_vectors.h"
#include "../vector_scores.h"
#include "bindings.h"

namespace metarank::bindings {

void bind_text(nb::module_& m) {
  bind(m, "encode_bilstm", &encode_bilstm,
       {"indptr", "tokens", "table", "forward", "forward_bias", "backward", "backward_bias", "dense", "dense_bias",
        "relu", "n_threads"});
  bind(m, "encode_cnn", &encode_cnn,
       {"indptr", "tokens", "table", "filters", "filters_bias", "dense", "dense_bias", "relu", "n_threads"});
  bind(m, "encode_bow", &encode_bow,
       {"indptr", "tokens", "table", "hidden", "hidden_bias", "dense", "dense_bias", "relu", "n_threads"});
  bind(m, "tanh_layer", &tanh_layer, {"X", "weights", "bias", "n_threads"});
  bind(m, "vector_scores", &vector_scores, {"Q", "F", "bias", "n_threads"});
  bind(m, "vector_scores_of_pairs", &vector_scores_of_pairs, {"Q", "F", "bias", "indptr", "labels", "n_threads"});

  nb::class_<LabelText> names(m, "LabelText",
                              "The labels' texts, a canonical CSR matrix (L, d), and their postings by word.");
  bind_init(
      names,
      [](LabelText* self, std::int64_t n_features, In1<std::int64_t> indptr, In1<std::int32_t> indices,
         In1<float> data) {
        require(n_features >= 0, "n_features must be non-negative");
        new (self) LabelText(n_features, indptr, indices, data);
      },
      {"n_features", "indptr", "indices", "data"});
  bind(names, "evidence", &LabelText::evidence,
       {"x_indptr", "x_indices", "x_data", "indptr", "labels", "n_threads"});
  bind(names, "weighed", &LabelText::weighed,
       {"x_indptr", "x_indices", "x_data", "indptr", "labels", "present", "absent", "n_threads"});
  bind(names, "held", &LabelText::held, {"indptr", "indices", "data", "n_threads"});
  bind(names, "shortlist", &LabelText::shortlist, {"indptr", "indices", "data", "k", "n_threads"});

  nb::class_<NameMentions> mentions(m, "NameMentions", "Names of labels, looked for in texts word by word.");
  bind_init(
      mentions,
      [](NameMentions* self, std::int64_t n_labels, In1<std::int64_t> indptr, In1<std::int64_t> words,
         In1<std::int32_t> labels, In1<std::int32_t> kinds) {
        new (self) NameMentions(n_labels, indptr, words, labels, kinds);
      },
      {"n_labels", "indptr", "words", "labels", "kinds"});
  bind(mentions, "texts_with", &NameMentions::texts_with, {"indptr", "words", "n_threads"});
  bind(mentions, "find", &NameMentions::find, {"indptr", "words", "rarity", "n_threads"});

  nb::class_<Mentions> found(m, "Mentions", "Labels that texts mention.");
  found.def(
      "columns",
      [](const Mentions& self) {
        Mentions own = self;
        return std::tuple(std::move(own.indptr), std::move(own.labels), std::move(own.columns));
      },
      "(indptr, labels, columns): the columns as of `metarank::Mention`.");
  bind(found, "best", &Mentions::best, {"k"});
}

}  // namespace metarank::bindings
