// Vectors of texts, given as lists of subwords, by the encoders of text_encoder.h; zeros for a text without any.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

Array2<float> encode_bilstm(const In1<std::int64_t>& indptr, const In1<std::int32_t>& tokens, const In2<float>& table,
                            const In2<float>& forward, const In1<float>& forward_bias, const In2<float>& backward,
                            const In1<float>& backward_bias, const In2<float>& dense, const In1<float>& dense_bias,
                            bool relu, int n_threads);

Array2<float> encode_cnn(const In1<std::int64_t>& indptr, const In1<std::int32_t>& tokens, const In2<float>& table,
                         const In2<float>& filters, const In1<float>& filters_bias, const In2<float>& dense,
                         const In1<float>& dense_bias, bool relu, int n_threads);

Array2<float> encode_bow(const In1<std::int64_t>& indptr, const In1<std::int32_t>& tokens, const In2<float>& table,
                         const In2<float>& hidden, const In1<float>& hidden_bias, const In2<float>& dense,
                         const In1<float>& dense_bias, bool relu, int n_threads);

// tanh(X W + b), row by row.
Array2<float> tanh_layer(const In2<float>& X, const In2<float>& weights, const In1<float>& bias, int n_threads);

}  // namespace metarank
