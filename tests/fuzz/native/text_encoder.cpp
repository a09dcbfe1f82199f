// Networks of short texts: the layers of a saved model, and subword ids.
#include "../../metarank/_core/text_vectors.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const int kind = in.byte() % 3;
    const bool relu = in.byte() % 2 == 1;
    const std::size_t dim = in.byte() % 32u, n_hidden = in.byte() % 32u, n_out = in.byte() % 32u;
    const Lists texts = in.lists();
    const auto table = in.matrix<float>(dim);
    const std::size_t n_columns = kind == 0 ? 4 * n_hidden : n_hidden;
    const auto hidden = in.matrix<float>(n_columns), backward = in.matrix<float>(kind == 0 ? n_columns : 0);
    const auto bias = in.array<float>(), backward_bias = in.array<float>();
    const auto dense = in.matrix<float>(n_out);
    const auto dense_bias = in.array<float>();
    if (kind == 0)
      encode_bilstm(texts.indptr, texts.labels, table, hidden, bias, backward, backward_bias, dense, dense_bias, relu, 1);
    else if (kind == 1)
      encode_cnn(texts.indptr, texts.labels, table, hidden, bias, dense, dense_bias, relu, 1);
    else
      encode_bow(texts.indptr, texts.labels, table, hidden, bias, dense, dense_bias, relu, 1);
    if (kind == 2) tanh_layer(table, hidden, bias, 1);
  });
}
