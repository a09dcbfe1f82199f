// Encoders of short texts: subword ids in, one vector a text out, as in metarank/text/encoders.py.
//
// A value of a layer is a bias plus products in ascending order of the inputs, whatever else is computed
// beside it: the vector of a text depends on that text alone.
#pragma once

#include <cstdint>
#include <vector>

namespace metarank {

enum class Activation : int { none = 0, relu = 1, tanh = 2 };

// y = activation(x W + b).
struct DenseLayer {
  const float* weights;  // (n_in, n_out), row-major
  const float* bias;     // n_out
  std::int64_t n_in, n_out;
  Activation activation;
};

// One direction: the rows of the weights are those of the input, then those of the state; the columns are
// the input, forget, cell and output gate.
struct LstmDirection {
  DenseLayer gates;  // (G + h, 4 h)
};

struct SubwordTable {
  const float* vectors;  // (n, G)
  std::int64_t n, dim;
};

// X (n, n_in) to Y (n, n_out); rows of X are `x_stride` apart. Y must not overlap X.
void dense_layer(const DenseLayer& layer, const float* X, std::int64_t x_stride, std::int64_t n, float* Y);

// Scratch of one worker.
struct TextScratch {
  std::vector<float> input;   // the text's subword vectors, one after another
  std::vector<float> gates;   // their products with the weights
  std::vector<float> state;   // of the LSTM: h, c and the gates of a step
  std::vector<float> hidden;  // what the dense layer reads
};

// The summaries of a text of n >= 1 subwords: `hidden` has the width that the dense layer reads.
void bilstm_summary(const SubwordTable& table, const LstmDirection& forward, const LstmDirection& backward,
                    const std::int32_t* tokens, std::int64_t n, TextScratch& scratch);
// `filters` has the weights of all positions of the window below each other, (width G, H).
void cnn_summary(const SubwordTable& table, const DenseLayer& filters, std::int64_t width, const std::int32_t* tokens,
                 std::int64_t n, TextScratch& scratch);
void bow_summary(const SubwordTable& table, const DenseLayer& layer, const std::int32_t* tokens, std::int64_t n,
                 TextScratch& scratch);

}  // namespace metarank
