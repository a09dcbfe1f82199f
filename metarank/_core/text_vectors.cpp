#include "text_vectors.h"

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"
#include "text_encoder.h"

namespace metarank {

namespace {

constexpr std::int64_t kTexts = 8;  // a block

struct Texts {
  const std::int64_t* indptr;
  const std::int32_t* tokens;
  std::int64_t n;
};

Texts require_texts(const In1<std::int64_t>& indptr, const In1<std::int32_t>& tokens, const In2<float>& table) {
  require_indptr(indptr, static_cast<std::int64_t>(tokens.shape(0)), "indptr");
  require_in_range(tokens, static_cast<std::int64_t>(table.shape(0)), "tokens");
  return {indptr.data(), tokens.data(), static_cast<std::int64_t>(indptr.shape(0)) - 1};
}

SubwordTable table_of(const In2<float>& table) {
  return {table.data(), static_cast<std::int64_t>(table.shape(0)), static_cast<std::int64_t>(table.shape(1))};
}

DenseLayer require_layer(const In2<float>& weights, const In1<float>& bias, std::size_t n_in, Activation activation,
                         const std::string& name) {
  require(weights.shape(0) == n_in && weights.shape(1) == bias.shape(0) && bias.shape(0) > 0,
          name + " must have " + std::to_string(n_in) + " rows and as many columns as its bias entries, got (" +
              std::to_string(weights.shape(0)) + ", " + std::to_string(weights.shape(1)) + ") and " +
              std::to_string(bias.shape(0)));
  return {weights.data(), bias.data(), static_cast<std::int64_t>(n_in), static_cast<std::int64_t>(bias.shape(0)),
          activation};
}

// A text's summary by `summarise(tokens, n, scratch)`, then the dense layer; zeros for a text without subwords.
template <typename Summarise>
Array2<float> encode(const Texts& texts, const DenseLayer& dense, int n_threads, const Summarise& summarise) {
  std::vector<float> out(static_cast<std::size_t>(texts.n * dense.n_out));
  parallel_for(texts.n, n_threads, kTexts, [&](std::int64_t begin, std::int64_t end, int) {
    TextScratch scratch;
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t n = texts.indptr[i + 1] - texts.indptr[i];
      if (n == 0) continue;
      summarise(texts.tokens + texts.indptr[i], n, scratch);
      dense_layer(dense, scratch.hidden.data(), dense.n_in, 1, out.data() + i * dense.n_out);
    }
  });
  return to_array(std::move(out), static_cast<std::size_t>(texts.n), static_cast<std::size_t>(dense.n_out));
}

}  // namespace

Array2<float> encode_bilstm(const In1<std::int64_t>& indptr, const In1<std::int32_t>& tokens, const In2<float>& table,
                            const In2<float>& forward, const In1<float>& forward_bias, const In2<float>& backward,
                            const In1<float>& backward_bias, const In2<float>& dense, const In1<float>& dense_bias,
                            bool relu, int n_threads) {
  const Texts texts = require_texts(indptr, tokens, table);
  const std::size_t h = forward_bias.shape(0) / 4;
  require(h > 0 && forward_bias.shape(0) == 4 * h && backward_bias.shape(0) == 4 * h,
          "forward_bias and backward_bias must have four entries a unit of the state");
  const LstmDirection one{require_layer(forward, forward_bias, table.shape(1) + h, Activation::none, "forward")};
  const LstmDirection other{require_layer(backward, backward_bias, table.shape(1) + h, Activation::none, "backward")};
  return encode(texts, require_layer(dense, dense_bias, 2 * h, relu ? Activation::relu : Activation::none, "dense"), n_threads,
                [&](const std::int32_t* ids, std::int64_t n, TextScratch& scratch) {
                  bilstm_summary(table_of(table), one, other, ids, n, scratch);
                });
}

Array2<float> encode_cnn(const In1<std::int64_t>& indptr, const In1<std::int32_t>& tokens, const In2<float>& table,
                         const In2<float>& filters, const In1<float>& filters_bias, const In2<float>& dense,
                         const In1<float>& dense_bias, bool relu, int n_threads) {
  const Texts texts = require_texts(indptr, tokens, table);
  require(table.shape(1) > 0 && filters.shape(0) % table.shape(1) == 0 && filters.shape(0) / table.shape(1) % 2 == 1,
          "filters must have an odd multiple of the table's columns as rows");
  const DenseLayer layer = require_layer(filters, filters_bias, filters.shape(0), Activation::tanh, "filters");
  const auto width = static_cast<std::int64_t>(filters.shape(0) / table.shape(1));
  return encode(texts, require_layer(dense, dense_bias, filters_bias.shape(0), relu ? Activation::relu : Activation::none, "dense"), n_threads,
                [&](const std::int32_t* ids, std::int64_t n, TextScratch& scratch) {
                  cnn_summary(table_of(table), layer, width, ids, n, scratch);
                });
}

Array2<float> encode_bow(const In1<std::int64_t>& indptr, const In1<std::int32_t>& tokens, const In2<float>& table,
                         const In2<float>& hidden, const In1<float>& hidden_bias, const In2<float>& dense,
                         const In1<float>& dense_bias, bool relu, int n_threads) {
  const Texts texts = require_texts(indptr, tokens, table);
  const DenseLayer layer = require_layer(hidden, hidden_bias, table.shape(1), Activation::tanh, "hidden");
  return encode(texts, require_layer(dense, dense_bias, hidden_bias.shape(0), relu ? Activation::relu : Activation::none, "dense"), n_threads,
                [&](const std::int32_t* ids, std::int64_t n, TextScratch& scratch) {
                  bow_summary(table_of(table), layer, ids, n, scratch);
                });
}

Array2<float> tanh_layer(const In2<float>& X, const In2<float>& weights, const In1<float>& bias, int n_threads) {
  const DenseLayer layer = require_layer(weights, bias, X.shape(1), Activation::tanh, "weights");
  std::vector<float> out(X.shape(0) * bias.shape(0));
  parallel_for(static_cast<std::int64_t>(X.shape(0)), n_threads, 64, [&](std::int64_t begin, std::int64_t end, int) {
    dense_layer(layer, X.data() + begin * layer.n_in, layer.n_in, end - begin, out.data() + begin * layer.n_out);
  });
  return to_array(std::move(out), X.shape(0), bias.shape(0));
}

}  // namespace metarank
