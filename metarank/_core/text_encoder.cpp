#include "text_encoder.h"

#include <algorithm>
#include <cstring>
#include <limits>

#include "float8.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr std::int64_t kRows = 4;  // of X that share a load of the weights

METARANK_INLINE Float8 sigmoid8(Float8 x) { return float8(1.0f) / (float8(1.0f) + exp_float8(-x)); }
METARANK_INLINE Float8 tanh8(Float8 x) {
  const Float8 twice = x + x, s = sigmoid8(twice);
  return (s + s) - float8(1.0f);
}

// Y[r, j] += sum_i X[r, i] W[i, j] for kCount rows and 8 kVectors columns, i ascending.
template <int kCount, int kVectors>
METARANK_INLINE void add_tile(const float* X, std::int64_t x_stride, const float* W, std::int64_t n_in,
                              std::int64_t n_out, float* Y, std::int64_t y_stride) {
  Float8 sum[kCount][kVectors];
  for (int r = 0; r < kCount; ++r)
    for (int v = 0; v < kVectors; ++v) sum[r][v] = load_float8(Y + r * y_stride + 8 * v);
  for (std::int64_t i = 0; i < n_in; ++i) {
    const float* w = W + i * n_out;
    for (int r = 0; r < kCount; ++r) {
      const Float8 x = float8(X[r * x_stride + i]);
      for (int v = 0; v < kVectors; ++v) sum[r][v] += x * load_float8(w + 8 * v);
    }
  }
  for (int r = 0; r < kCount; ++r)
    for (int v = 0; v < kVectors; ++v) store_float8(Y + r * y_stride + 8 * v, sum[r][v]);
}

// Y += X W, rows `x_stride` and `y_stride` apart. A tile of the weights serves all rows before the next.
METARANK_INLINE void add_products(const float* X, std::int64_t x_stride, std::int64_t n, const float* W,
                                  std::int64_t n_in, std::int64_t n_out, float* Y, std::int64_t y_stride) {
  std::int64_t j = 0;
  if (n == 1)  // wide tiles: many sums side by side
    for (; j + 64 <= n_out; j += 64) add_tile<1, 8>(X, x_stride, W + j, n_in, n_out, Y + j, y_stride);
  for (; j + 16 <= n_out; j += 16) {
    std::int64_t r = 0;
    for (; r + kRows <= n; r += kRows)
      add_tile<kRows, 2>(X + r * x_stride, x_stride, W + j, n_in, n_out, Y + r * y_stride + j, y_stride);
    const float* x = X + r * x_stride;
    float* y = Y + r * y_stride + j;
    if (n - r == 1) add_tile<1, 2>(x, x_stride, W + j, n_in, n_out, y, y_stride);
    if (n - r == 2) add_tile<2, 2>(x, x_stride, W + j, n_in, n_out, y, y_stride);
    if (n - r == 3) add_tile<3, 2>(x, x_stride, W + j, n_in, n_out, y, y_stride);
  }
  for (; j < n_out; ++j)
    for (std::int64_t r = 0; r < n; ++r) {
      float sum = Y[r * y_stride + j];
      for (std::int64_t i = 0; i < n_in; ++i) sum += X[r * x_stride + i] * W[i * n_out + j];
      Y[r * y_stride + j] = sum;
    }
}

METARANK_KERNEL void products(const float* X, std::int64_t x_stride, std::int64_t n, const float* W,
                              std::int64_t n_in, std::int64_t n_out, float* Y, std::int64_t y_stride) {
  add_products(X, x_stride, n, W, n_in, n_out, Y, y_stride);
}

// Eight at a time; what is left is carried in a buffer, so that all values go through the same steps.
METARANK_KERNEL void activate(Activation activation, float* y, std::int64_t n) {
  if (activation == Activation::none) return;
  for (std::int64_t j = 0; j < n; j += 8) {
    const auto count = static_cast<std::size_t>(std::min<std::int64_t>(8, n - j));
    float buffer[8] = {0};
    std::memcpy(buffer, y + j, count * sizeof(float));
    Float8 v = load_float8(buffer);
    v = activation == Activation::relu ? larger(v, float8(0.0f)) : tanh8(v);
    store_float8(buffer, v);
    std::memcpy(y + j, buffer, count * sizeof(float));
  }
}

// One step of the cell: c = f c + i g, h = o tanh(c). Lanes beyond h_dim hold values nobody reads.
METARANK_KERNEL void cell(const float* gates, std::int64_t h_dim, float* h, float* c) {
  for (std::int64_t j = 0; j < h_dim; j += 8) {
    const Float8 i = sigmoid8(load_float8(gates + j)), f = sigmoid8(load_float8(gates + h_dim + j));
    const Float8 g = tanh8(load_float8(gates + 2 * h_dim + j)), o = sigmoid8(load_float8(gates + 3 * h_dim + j));
    const Float8 next = f * load_float8(c + j) + i * g;
    store_float8(c + j, next);
    store_float8(h + j, o * tanh8(next));
  }
}

void gather(const SubwordTable& table, const std::int32_t* tokens, std::int64_t n, std::vector<float>& out) {
  out.resize(static_cast<std::size_t>(n * table.dim));
  for (std::int64_t t = 0; t < n; ++t)
    std::memcpy(out.data() + t * table.dim, table.vectors + tokens[t] * table.dim,
                static_cast<std::size_t>(table.dim) * sizeof(float));
}

void fill_bias(const DenseLayer& layer, std::int64_t n, float* Y) {
  for (std::int64_t r = 0; r < n; ++r) std::copy_n(layer.bias, layer.n_out, Y + r * layer.n_out);
}

void run_direction(const SubwordTable& table, const LstmDirection& direction, std::int64_t n, bool backwards,
                   TextScratch& scratch, float* last) {
  const DenseLayer& layer = direction.gates;
  const std::int64_t width = layer.n_out, h_dim = width / 4, room = h_dim + 8;
  scratch.gates.resize(static_cast<std::size_t>(n * width + 8));
  fill_bias(layer, n, scratch.gates.data());
  by_level<products>(scratch.input.data(), table.dim, n, layer.weights, table.dim, width, scratch.gates.data(), width);
  scratch.state.assign(static_cast<std::size_t>(2 * room + width + 8), 0.0f);
  float *h = scratch.state.data(), *c = h + room, *step = c + room;
  for (std::int64_t t = 0; t < n; ++t) {
    std::copy_n(scratch.gates.data() + (backwards ? n - 1 - t : t) * width, width, step);
    if (t > 0) by_level<products>(h, h_dim, 1, layer.weights + table.dim * width, h_dim, width, step, width);
    by_level<cell>(step, h_dim, h, c);
  }
  std::copy_n(h, h_dim, last);
}

}  // namespace

void dense_layer(const DenseLayer& layer, const float* X, std::int64_t x_stride, std::int64_t n, float* Y) {
  fill_bias(layer, n, Y);
  by_level<products>(X, x_stride, n, layer.weights, layer.n_in, layer.n_out, Y, layer.n_out);
  by_level<activate>(layer.activation, Y, n * layer.n_out);
}

void bilstm_summary(const SubwordTable& table, const LstmDirection& forward, const LstmDirection& backward,
                    const std::int32_t* tokens, std::int64_t n, TextScratch& scratch) {
  gather(table, tokens, n, scratch.input);
  const std::int64_t h_dim = forward.gates.n_out / 4;
  scratch.hidden.resize(static_cast<std::size_t>(2 * h_dim));
  run_direction(table, forward, n, false, scratch, scratch.hidden.data());
  run_direction(table, backward, n, true, scratch, scratch.hidden.data() + h_dim);
}

void cnn_summary(const SubwordTable& table, const DenseLayer& filters, std::int64_t width, const std::int32_t* tokens,
                 std::int64_t n, TextScratch& scratch) {
  gather(table, tokens, n, scratch.input);
  const std::int64_t H = filters.n_out, before = width / 2;
  scratch.gates.resize(static_cast<std::size_t>(n * H));
  fill_bias(filters, n, scratch.gates.data());
  for (std::int64_t w = 0; w < width; ++w) {  // subword t + w - before answers for position t
    const std::int64_t first = std::max<std::int64_t>(0, before - w), last = std::min(n, n + before - w);
    if (first >= last) continue;
    by_level<products>(scratch.input.data() + (first + w - before) * table.dim, table.dim, last - first, filters.weights
                       + w * table.dim * H, table.dim, H, scratch.gates.data() + first * H, H);
  }
  scratch.hidden.assign(static_cast<std::size_t>(H), -std::numeric_limits<float>::infinity());
  for (std::int64_t t = 0; t < n; ++t)
    for (std::int64_t j = 0; j < H; ++j)
      scratch.hidden[static_cast<std::size_t>(j)] =
          std::max(scratch.hidden[static_cast<std::size_t>(j)], scratch.gates[static_cast<std::size_t>(t * H + j)]);
  by_level<activate>(filters.activation, scratch.hidden.data(), H);
}

void bow_summary(const SubwordTable& table, const DenseLayer& layer, const std::int32_t* tokens, std::int64_t n,
                 TextScratch& scratch) {
  scratch.input.assign(static_cast<std::size_t>(table.dim), 0.0f);
  for (std::int64_t t = 0; t < n; ++t)
    for (std::int64_t j = 0; j < table.dim; ++j)
      scratch.input[static_cast<std::size_t>(j)] += table.vectors[tokens[t] * table.dim + j];
  for (float& value : scratch.input) value /= static_cast<float>(n);
  scratch.hidden.resize(static_cast<std::size_t>(layer.n_out));
  dense_layer(layer, scratch.input.data(), table.dim, 1, scratch.hidden.data());
}

}  // namespace metarank
