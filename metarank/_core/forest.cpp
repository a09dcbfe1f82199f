#include "forest.h"

#include <algorithm>
#include <string>

#include "sparse_rows.h"
#include "parallel.h"

namespace metarank {

Forest::Forest(const In1<int32_t>& feature, const In1<double>& threshold, const In2<int32_t>& children,
               const In1<int32_t>& root, const In1<int64_t>& leaf_indptr, const In1<int32_t>& leaf_label,
               const In1<float>& leaf_share, int64_t n_features, int64_t n_labels)
    : root_(root.data(), root.data() + root.shape(0)),
      leaf_indptr_(leaf_indptr.data(), leaf_indptr.data() + leaf_indptr.shape(0)),
      leaf_label_(leaf_label.data(), leaf_label.data() + leaf_label.shape(0)),
      leaf_share_(leaf_share.data(), leaf_share.data() + leaf_share.shape(0)),
      n_features_(n_features),
      n_labels_(n_labels) {
  require(leaf_share_.size() == leaf_label_.size() && !leaf_indptr_.empty(), "leaves must be a CSR matrix");
  require(!root_.empty(), "a forest must have a tree");
  const auto n_leaves = static_cast<int64_t>(leaf_indptr_.size()) - 1;
  require_pairs(leaf_indptr, leaf_label, n_leaves, n_labels);
  nodes_ = checked_nodes(feature, threshold, children, nullptr, root, n_features, n_leaves);
}

Array1<float> Forest::score(const In2<float>& X, const In1<int64_t>& indptr, const In1<int32_t>& labels,
                            int n_threads) const {
  const auto n = static_cast<int64_t>(X.shape(0));
  require(static_cast<int64_t>(X.shape(1)) == n_features_,
          "X must have " + std::to_string(n_features_) + " columns, got " + std::to_string(X.shape(1)));
  require_pairs(indptr, labels, n, n_labels_);
  std::vector<float> out(labels.shape(0));
  parallel_for(n, n_threads, 64, [&](int64_t begin, int64_t end, int) {
    std::vector<double> sum(static_cast<size_t>((end - begin) * n_labels_), 0.0);
    const auto add = [this, sums = sum.data()](int64_t i, size_t, size_t leaf) {
      double* const of_row = sums + i * n_labels_;
      const int64_t last = leaf_indptr_[leaf + 1];
      for (int64_t p = leaf_indptr_[leaf]; p < last; ++p) of_row[leaf_label_[p]] += static_cast<double>(leaf_share_[p]);
    };
    walk_trees<false>(nodes_, root_, X.data() + begin * n_features_, end - begin, n_features_, add);
    const auto n_trees = static_cast<double>(root_.size());
    for (int64_t i = begin; i < end; ++i)
      for (int64_t p = indptr.data()[i]; p < indptr.data()[i + 1]; ++p)
        out[p] = static_cast<float>(sum[(i - begin) * n_labels_ + labels.data()[p]] / n_trees);
  });
  return to_array(std::move(out));
}

}  // namespace metarank
