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

// One label's sum over features, and the features met so far. No branch where values are added: whether a feature is
// new cannot be guessed.
class Sums {
 public:
  explicit Sums(std::int64_t n_features)
      : sum_(static_cast<std::size_t>(n_features)), is_met_(static_cast<std::size_t>(n_features)), met_(1) {}

  void add(const SparseRows& X, std::int64_t row) {
    met_.resize(std::max(met_.size(), n_met_ + static_cast<std::size_t>(X.indptr[row + 1] - X.indptr[row]) + 1));
    // Locals, which the bytes that are written cannot be.
    const std::int32_t* const index = X.indices;
    const float* const value = X.data;
    double* const sum = sum_.data();
    std::uint8_t* const is_met = is_met_.data();
    std::int32_t* met = met_.data() + n_met_;
    const std::int64_t end = X.indptr[row + 1];
    for (std::int64_t p = X.indptr[row]; p < end; ++p) {
      const std::int32_t f = index[p];
      *met = f;
      met += is_met[f] == 0;
      is_met[f] = 1;
      sum[f] += value[p];
    }
    n_met_ = static_cast<std::size_t>(met - met_.data());
  }

  // f(feature, sum) of those met, features ascending; none are met any more.
  template <typename F>
  void take(const F& f) {
    if (n_met_ * 16 < sum_.size()) {
      std::sort(met_.begin(), met_.begin() + static_cast<std::ptrdiff_t>(n_met_));
    } else {  // a walk over all features takes less time than a sort
      met_.resize(sum_.size() + 1);
      n_met_ = 0;
      for (std::size_t i = 0; i < sum_.size(); ++i) {
        met_[n_met_] = static_cast<std::int32_t>(i);
        n_met_ += is_met_[i];
      }
    }
    for (std::size_t m = 0; m < n_met_; ++m) {
      const auto i = static_cast<std::size_t>(met_[m]);
      f(met_[m], sum_[i]);
      sum_[i] = 0.0;
      is_met_[i] = 0;
    }
    n_met_ = 0;
  }

 private:
  std::vector<double> sum_;
  std::vector<std::uint8_t> is_met_;
  std::vector<std::int32_t> met_;  // the first n_met_ are; one more is written to
  std::size_t n_met_ = 0;
};

struct Term {
  std::int32_t feature;
  float mean;
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
  std::vector<std::unique_ptr<Sums>> scratch(static_cast<std::size_t>(std::max(1, n_threads)));
  parallel_for(n_labels, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int worker) {
    auto& s = scratch[static_cast<std::size_t>(worker)];
    if (!s) s = std::make_unique<Sums>(n_features);
    std::vector<Term> terms;
    Block& block = blocks[static_cast<std::size_t>(begin / kBlock)];
    for (std::int64_t l = begin; l < end; ++l) {
      for (std::int64_t p = start[l]; p < start[l + 1]; ++p) s->add(X, label_rows.data()[p]);
      const auto count = static_cast<double>(start[l + 1] - start[l]);
      terms.clear();
      s->take([&](std::int32_t f, double sum) { terms.push_back({f, static_cast<float>(sum / count)}); });
      for (const Term& t : terms) sq_norm[static_cast<std::size_t>(l)] += static_cast<double>(t.mean) * t.mean;
      if (static_cast<std::int64_t>(terms.size()) > max_terms) {
        std::nth_element(terms.begin(), terms.begin() + max_terms, terms.end(), [](const Term& a, const Term& b) {
          const float size_a = std::fabs(a.mean), size_b = std::fabs(b.mean);
          return size_a > size_b || (size_a == size_b && a.feature < b.feature);
        });
        terms.resize(static_cast<std::size_t>(max_terms));
        std::sort(terms.begin(), terms.end(), [](const Term& a, const Term& b) { return a.feature < b.feature; });
      }
      for (const Term& t : terms) {
        block.feature.push_back(t.feature);
        block.value.push_back(t.mean);
      }
      out_indptr[static_cast<std::size_t>(l) + 1] = static_cast<std::int64_t>(terms.size());
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
