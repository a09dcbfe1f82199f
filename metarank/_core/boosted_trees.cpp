#include "boosted_trees.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "parallel.h"

namespace metarank {

BoostedTrees::BoostedTrees(const In1<std::int32_t>& feature, const In1<double>& threshold,
                           const In2<std::int32_t>& children, const In1<std::uint8_t>& missing,
                           const In1<std::int32_t>& root, const In1<double>& leaf_value,
                           const In1<std::int32_t>& output, std::int64_t n_features, std::int64_t n_outputs)
    : nodes_(checked_nodes(feature, threshold, children, &missing, root, n_features,
                           static_cast<std::int64_t>(leaf_value.shape(0)))),
      root_(root.data(), root.data() + root.shape(0)),
      leaf_value_(leaf_value.data(), leaf_value.data() + leaf_value.shape(0)),
      output_(output.data(), output.data() + output.shape(0)),
      n_features_(n_features),
      n_outputs_(n_outputs) {
  require(n_outputs >= 1, "n_outputs must be positive");
  require(output_.size() == root_.size(), "output must name one output a tree");
  for (const std::int32_t k : output_) require(k >= 0 && k < n_outputs, "output must lie in [0, n_outputs)");
  for (const TreeNode& node : nodes_) zero_is_missing_ |= (node.missing & kMissingMask) == kMissingZero;
  masks_ = std::make_unique<LeafMasks>(nodes_, root_, leaf_value_, output_, n_features, n_outputs);
}

namespace {

template <typename T>
bool has_nan(const T* x, std::int64_t n) {
  bool any = false;
  for (std::int64_t i = 0; i < n; ++i) any |= x[i] != x[i];
  return any;
}

}  // namespace

template <typename T>
Array2<double> BoostedTrees::predict(const In2<T>& X, int n_threads) const {
  const auto n = static_cast<std::int64_t>(X.shape(0));
  require(static_cast<std::int64_t>(X.shape(1)) == n_features_,
          "X must have " + std::to_string(n_features_) + " columns, got " + std::to_string(X.shape(1)));
  std::vector<double> out(static_cast<std::size_t>(n * n_outputs_), 0.0);
  // Trees outermost over a block of rows: they are read once a block and stay in cache.
  std::vector<LeafMasks::Scratch> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
  parallel_for(n, n_threads, 64, [&](std::int64_t begin, std::int64_t end, int worker) {
    const T* x = X.data() + begin * n_features_;
    double* y = out.data() + begin * n_outputs_;
    if (zero_is_missing_ || has_nan(x, (end - begin) * n_features_)) return add_trees<true>(x, end - begin, y);
    if constexpr (std::is_same_v<T, float>)
      if (masks_->usable()) return masks_->score(x, end - begin, y, scratch[static_cast<std::size_t>(worker)]);
    add_trees<false>(x, end - begin, y);
  });
  return to_array(std::move(out), static_cast<std::size_t>(n), static_cast<std::size_t>(n_outputs_));
}

template <bool kMissing, typename T>
void BoostedTrees::add_trees(const T* X, std::int64_t rows, double* out) const {
  std::int32_t leaf[kWalkers];
  for (std::size_t first = 0; first < root_.size(); first += kWalkers) {
    const std::size_t trees = std::min(kWalkers, root_.size() - first);
    for (std::int64_t i = 0; i < rows; ++i) {
      leaves_of<kMissing>(nodes_.data(), root_.data() + first, trees, X + i * n_features_, leaf);
      for (std::size_t t = 0; t < trees; ++t)
        out[i * n_outputs_ + output_[first + t]] += leaf_value_[static_cast<std::size_t>(leaf[t])];
    }
  }
}

template Array2<double> BoostedTrees::predict(const In2<float>&, int) const;
template Array2<double> BoostedTrees::predict(const In2<double>&, int) const;

}  // namespace metarank
