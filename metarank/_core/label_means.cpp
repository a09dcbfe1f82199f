#include "label_means.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "arrays.h"
#include "parallel.h"
#include "pairs.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlock = 64;  // labels a task averages

struct Block {
  std::vector<std::int32_t> feature;
  std::vector<float> value;
};

// One label's sum over features, features met so far, and which label last met a feature.
struct Scratch {
  std::vector<double> sum;
  std::vector<std::int32_t> met;
  std::vector<std::int64_t> met_by;

  explicit Scratch(std::int64_t n_features)
      : sum(static_cast<std::size_t>(n_features)), met_by(static_cast<std::size_t>(n_features), -1) {}

  // Features met, ascending. Where they are many a walk over all features takes less time than a sort.
  void order(std::int64_t label) {
    const std::size_t n = met.size();
    if (n * 16 < met_by.size()) {
      std::sort(met.begin(), met.end());
      return;
    }
    met.clear();
    for (std::size_t f = 0; f < met_by.size(); ++f)
      if (met_by[f] == label) met.push_back(static_cast<std::int32_t>(f));
  }

  void add(const SparseRows& X, std::int64_t row, std::int64_t label) {
    for (std::int64_t p = X.indptr[row]; p < X.indptr[row + 1]; ++p) {
      const auto f = static_cast<std::size_t>(X.indices[p]);
      if (met_by[f] != label) {
        met_by[f] = label;
        sum[f] = 0.0;
        met.push_back(X.indices[p]);
      }
      sum[f] += X.data[p];
    }
  }
};

}  // namespace

std::tuple<Array1<std::int64_t>, Array1<std::int32_t>, Array1<float>, Array1<double>> label_means_sparse(
    std::int64_t n_features, In1<std::int64_t> indptr, In1<std::int32_t> indices, In1<float> data,
    In1<std::int64_t> label_indptr, In1<std::int32_t> label_rows, std::int64_t max_terms, int n_threads) {
  require(n_features >= 0 && max_terms >= 1, "n_features must not be negative and max_terms must be positive");
  const SparseRows X = require_csr(indptr, indices, data, n_features);
  require_indptr(label_indptr, static_cast<std::int64_t>(label_rows.shape(0)), "label_indptr");
  const auto n = static_cast<std::int64_t>(indptr.shape(0)) - 1;
  for (std::size_t i = 0; i < label_rows.shape(0); ++i)
    require(label_rows.data()[i] >= 0 && label_rows.data()[i] < n, "label_rows must lie in [0, n)");
  const auto n_labels = static_cast<std::int64_t>(label_indptr.shape(0)) - 1;
  const std::int64_t* start = label_indptr.data();

  std::vector<std::int64_t> out_indptr(static_cast<std::size_t>(n_labels) + 1);
  std::vector<double> sq_norm(static_cast<std::size_t>(n_labels));
  std::vector<std::int32_t> out_feature;
  std::vector<float> out_value;
  std::vector<Block> blocks(static_cast<std::size_t>((n_labels + kBlock - 1) / kBlock));
  std::vector<std::unique_ptr<Scratch>> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
  parallel_for(n_labels, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    auto& s = scratch[static_cast<std::size_t>(worker)];
    if (!s) s = std::make_unique<Scratch>(n_features);
    Block& block = blocks[static_cast<std::size_t>(begin / kBlock)];
    for (std::int64_t l = begin; l < end; ++l) {
      s->met.clear();
      for (std::int64_t p = start[l]; p < start[l + 1]; ++p) s->add(X, label_rows.data()[p], l);
      s->order(l);
      const auto count = static_cast<double>(start[l + 1] - start[l]);
      const auto mean = [&](std::int32_t f) { return static_cast<float>(s->sum[static_cast<std::size_t>(f)] / count); };
      for (const std::int32_t f : s->met)
        sq_norm[static_cast<std::size_t>(l)] += static_cast<double>(mean(f)) * mean(f);
      if (static_cast<std::int64_t>(s->met.size()) > max_terms) {
        std::nth_element(s->met.begin(), s->met.begin() + max_terms, s->met.end(),
                         [&](std::int32_t a, std::int32_t b) {
                           const float size_a = std::fabs(mean(a)), size_b = std::fabs(mean(b));
                           return size_a > size_b || (size_a == size_b && a < b);
                         });
        s->met.resize(static_cast<std::size_t>(max_terms));
        std::sort(s->met.begin(), s->met.end());
      }
      for (const std::int32_t f : s->met) {
        block.feature.push_back(f);
        block.value.push_back(mean(f));
      }
      out_indptr[static_cast<std::size_t>(l) + 1] = static_cast<std::int64_t>(s->met.size());
    }
  });
  for (std::size_t l = 0; l < sq_norm.size(); ++l) out_indptr[l + 1] += out_indptr[l];
  out_feature.reserve(static_cast<std::size_t>(out_indptr.back()));
  out_value.reserve(static_cast<std::size_t>(out_indptr.back()));
  for (Block& block : blocks) {  // each is given back as soon as it is copied
    out_feature.insert(out_feature.end(), block.feature.begin(), block.feature.end());
    out_value.insert(out_value.end(), block.value.begin(), block.value.end());
    block = Block();
  }
  return std::make_tuple(to_array(std::move(out_indptr)), to_array(std::move(out_feature)),
                        to_array(std::move(out_value)), to_array(std::move(sq_norm)));
}

}  // namespace metarank
