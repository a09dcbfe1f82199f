#include "names.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "parallel.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlock = 64;

float cosine(double dot, double a, double b) {
  return a > 0.0 && b > 0.0 ? static_cast<float>(dot / (a * b)) : 0.0F;
}

}  // namespace

LabelText::Csr LabelText::checked_csr(const char* name, const In1<std::int64_t>& indptr,
                                      const In1<std::int32_t>& indices, const In1<float>& data,
                                      std::int64_t n_features) {
  const std::string prefix(name);
  require(indptr.shape(0) >= 1, prefix + ".indptr must not be empty");
  require(indices.shape(0) == data.shape(0), prefix + ".indices and .data must have the same length");
  const Csr m{static_cast<std::int64_t>(indptr.shape(0)) - 1, indptr.data(), indices.data(), data.data()};
  const auto nnz = static_cast<std::int64_t>(data.shape(0));
  require(m.indptr[0] == 0 && m.indptr[m.n_rows] == nnz,
          prefix + ".indptr must start at 0 and end at the number of entries");
  for (std::int64_t i = 0; i < m.n_rows; ++i) {
    require(m.indptr[i] <= m.indptr[i + 1] && m.indptr[i + 1] <= nnz, prefix + ".indptr must not decrease");
    std::int32_t previous = -1;
    for (std::int64_t p = m.indptr[i]; p < m.indptr[i + 1]; ++p) {
      require(m.indices[p] > previous && m.indices[p] < n_features,
              prefix + ".indices must be ascending, distinct and below the number of features");
      previous = m.indices[p];
    }
  }
  return m;
}

double LabelText::norm(const Csr& m, std::int64_t row) {
  double s = 0.0;
  for (std::int64_t p = m.indptr[row]; p < m.indptr[row + 1]; ++p) s += static_cast<double>(m.data[p]) * m.data[p];
  return std::sqrt(s);
}

LabelText::LabelText(std::int64_t n_features, const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices,
                     const In1<float>& data)
    : LabelText(n_features, checked_csr("label_text", indptr, indices, data, n_features)) {}

LabelText::LabelText(std::int64_t n_features, const Csr& text)
    : indptr_(text.indptr, text.indptr + text.n_rows + 1),
      words_(text.indices, text.indices + indptr_.back()),
      values_(text.data, text.data + indptr_.back()),
      norm_(static_cast<std::size_t>(text.n_rows)),
      word_indptr_(static_cast<std::size_t>(n_features) + 1, 0),
      word_labels_(values_.size()),
      word_values_(values_.size()) {
  for (const std::int32_t f : words_) ++word_indptr_[static_cast<std::size_t>(f) + 1];
  for (std::size_t f = 1; f < word_indptr_.size(); ++f) word_indptr_[f] += word_indptr_[f - 1];
  std::vector<std::int64_t> next(word_indptr_.begin(), word_indptr_.end() - 1);
  for (std::int64_t l = 0; l < text.n_rows; ++l) {
    norm_[static_cast<std::size_t>(l)] = norm(text, l);
    for (std::int64_t p = text.indptr[l]; p < text.indptr[l + 1]; ++p) {
      const auto at = static_cast<std::size_t>(next[static_cast<std::size_t>(text.indices[p])]++);
      word_labels_[at] = static_cast<std::int32_t>(l);
      word_values_[at] = text.data[p];
    }
  }
}

void LabelText::evidence_of(std::int32_t label, const float* x, double x_norm, float* column, std::int64_t stride) const {
  const auto l = static_cast<std::size_t>(label);
  double dot = 0.0, weight = 0.0, weight_present = 0.0;
  std::int64_t present = 0;
  for (auto p = static_cast<std::size_t>(indptr_[l]); p < static_cast<std::size_t>(indptr_[l + 1]); ++p) {
    const double w = values_[p];
    const float v = x[words_[p]];
    weight += std::fabs(w);
    if (v == 0.0F) continue;
    dot += v * w;
    weight_present += std::fabs(w);
    ++present;
  }
  const auto words = static_cast<double>(indptr_[l + 1] - indptr_[l]);
  column[0] = cosine(dot, x_norm, norm_[l]);
  column[stride] = words > 0.0 ? static_cast<float>(static_cast<double>(present) / words) : 0.0F;
  column[2 * stride] = weight > 0.0 ? static_cast<float>(weight_present / weight) : 0.0F;
  column[3 * stride] = static_cast<float>(words);
}

void LabelText::nearest(const Csr& x, std::int64_t row, std::size_t k, std::vector<double>& dots, std::vector<Hit>& hits) const {
  hits.clear();
  for (std::int64_t p = x.indptr[row]; p < x.indptr[row + 1]; ++p) {
    const double v = x.data[p];
    if (v == 0.0) continue;
    const auto f = static_cast<std::size_t>(x.indices[p]);
    for (auto q = static_cast<std::size_t>(word_indptr_[f]); q < static_cast<std::size_t>(word_indptr_[f + 1]); ++q) {
      double& dot = dots[static_cast<std::size_t>(word_labels_[q])];
      if (dot == 0.0) hits.push_back({0.0F, word_labels_[q]});  // again after a sum that cancelled: see below
      dot += v * word_values_[q];
    }
  }
  const double x_norm = norm(x, row);
  for (Hit& hit : hits) {  // the second of two entries finds the dot already cleared, and goes
    double& dot = dots[static_cast<std::size_t>(hit.label)];
    hit.score = cosine(dot, x_norm, norm_[static_cast<std::size_t>(hit.label)]);
    dot = 0.0;
  }
  std::erase_if(hits, [](const Hit& hit) { return !(hit.score > 0.0F); });
  if (hits.size() > k) {
    std::nth_element(hits.begin(), hits.begin() + static_cast<std::ptrdiff_t>(k), hits.end(),
                     [](const Hit& a, const Hit& b) {
                       return a.score != b.score ? a.score > b.score : a.label < b.label;
                     });
    hits.resize(k);
  }
  std::sort(hits.begin(), hits.end(), [](const Hit& a, const Hit& b) { return a.label < b.label; });
}

template <typename Of>
void LabelText::for_each_row(const Csr& x, const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels,
                             int n_threads, const Of& of) const {
  require(n_threads >= 1, "n_threads must be positive");
  const auto m = static_cast<std::int64_t>(labels.shape(0));
  require(static_cast<std::int64_t>(indptr.shape(0)) == x.n_rows + 1, "candidates must have as many rows as X");
  require(indptr.data()[0] == 0 && indptr.data()[x.n_rows] == m,
          "candidates.indptr must start at 0 and end at the number of pairs");
  for (std::int64_t i = 0; i < x.n_rows; ++i)
    require(indptr.data()[i] <= indptr.data()[i + 1], "candidates.indptr must not decrease");
  for (std::int64_t p = 0; p < m; ++p)
    require(labels.data()[p] >= 0 && labels.data()[p] < n_labels(), "candidates.labels must lie in [0, L)");
  parallel_for(x.n_rows, n_threads, 16, [&](std::int64_t begin, std::int64_t end, int) {
    auto scratch = word_pool_.take([] { return std::make_unique<std::vector<float>>(); });
    std::vector<float>& value = *scratch;
    value.resize(static_cast<std::size_t>(n_features()));
    for (std::int64_t i = begin; i < end; ++i) {
      for (std::int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p)
        value[static_cast<std::size_t>(x.indices[p])] = x.data[p];
      of(i, value.data(), indptr.data()[i], indptr.data()[i + 1]);
      for (std::int64_t p = x.indptr[i]; p < x.indptr[i + 1]; ++p)
        value[static_cast<std::size_t>(x.indices[p])] = 0.0F;
    }
    word_pool_.give_back(std::move(scratch));
  });
}

Array2<float> LabelText::evidence(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                                  const In1<float>& x_data, const In1<std::int64_t>& indptr,
                                  const In1<std::int32_t>& labels, int n_threads) const {
  const Csr x = checked_csr("X", x_indptr, x_indices, x_data, n_features());
  const std::size_t m = labels.shape(0);
  std::vector<float> out(4 * m);
  for_each_row(x, indptr, labels, n_threads,
               [&](std::int64_t row, const float* value, std::int64_t first, std::int64_t last) {
                 const double x_norm = norm(x, row);
                 for (std::int64_t pair = first; pair < last; ++pair)
                   evidence_of(labels.data()[pair], value, x_norm, out.data() + pair, static_cast<std::int64_t>(m));
               });
  return to_array(std::move(out), 4, m);
}

Array1<float> LabelText::weighed(const In1<std::int64_t>& x_indptr, const In1<std::int32_t>& x_indices,
                                 const In1<float>& x_data, const In1<std::int64_t>& indptr,
                                 const In1<std::int32_t>& labels, const In1<float>& present,
                                 const In1<float>& absent, int n_threads) const {
  const Csr x = checked_csr("X", x_indptr, x_indices, x_data, n_features());
  require(static_cast<std::int64_t>(present.shape(0)) == n_features() && present.shape(0) == absent.shape(0),
          "present and absent must have one value a feature");
  std::vector<float> out(labels.shape(0));
  for_each_row(x, indptr, labels, n_threads,
               [&](std::int64_t, const float* value, std::int64_t first, std::int64_t last) {
                 for (std::int64_t pair = first; pair < last; ++pair) {
                   const auto l = static_cast<std::size_t>(labels.data()[pair]);
                   double sum = 0.0;
                   for (std::int64_t p = indptr_[l]; p < indptr_[l + 1]; ++p) {
                     const std::int32_t word = words_[static_cast<std::size_t>(p)];
                     sum += value[word] != 0.0F ? present.data()[word] : absent.data()[word];
                   }
                   out[static_cast<std::size_t>(pair)] = static_cast<float>(sum);
                 }
               });
  return to_array(std::move(out));
}

std::tuple<Array1<std::int64_t>, Array1<std::int32_t>> LabelText::held(const In1<std::int64_t>& indptr,
                                                                       const In1<std::int32_t>& indices,
                                                                       const In1<float>& data, int n_threads) const {
  require(n_threads >= 1, "n_threads must be positive");
  const Csr x = checked_csr("X", indptr, indices, data, n_features());
  std::vector<std::vector<std::int32_t>> found(static_cast<std::size_t>((x.n_rows + kBlock - 1) / kBlock));
  std::vector<std::int64_t> start(static_cast<std::size_t>(x.n_rows) + 1, 0);
  parallel_for(x.n_rows, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    std::vector<std::int32_t>& labels = found[static_cast<std::size_t>(begin / kBlock)];
    std::vector<std::int32_t> lacking(static_cast<std::size_t>(n_labels()));  // words of each label
    for (std::size_t l = 0; l < lacking.size(); ++l) lacking[l] = static_cast<std::int32_t>(indptr_[l + 1] - indptr_[l]);
    // f(label, count of its words that the row is not yet known to have) for each word of the row and each label of it.
    const auto each = [&](std::int64_t row, const auto& f) {
      for (std::int64_t p = x.indptr[row]; p < x.indptr[row + 1]; ++p) {
        if (x.data[p] == 0.0F) continue;
        const auto word = static_cast<std::size_t>(x.indices[p]);
        for (std::int64_t q = word_indptr_[word]; q < word_indptr_[word + 1]; ++q) {
          const std::int32_t label = word_labels_[static_cast<std::size_t>(q)];
          f(label, lacking[static_cast<std::size_t>(label)]);
        }
      }
    };
    for (std::int64_t row = begin; row < end; ++row) {
      const std::size_t before = labels.size();
      each(row, [&](std::int32_t label, std::int32_t& n) {
        if (--n == 0) labels.push_back(label);
      });
      each(row, [](std::int32_t, std::int32_t& n) { ++n; });
      std::sort(labels.begin() + static_cast<std::ptrdiff_t>(before), labels.end());
      start[static_cast<std::size_t>(row) + 1] = static_cast<std::int64_t>(labels.size() - before);
    }
  });
  for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  std::vector<std::int32_t> labels;
  labels.reserve(static_cast<std::size_t>(start.back()));
  for (const auto& block : found) labels.insert(labels.end(), block.begin(), block.end());
  return {to_array(std::move(start)), to_array(std::move(labels))};
}

LabelText::Lists LabelText::shortlist(const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices,
                                      const In1<float>& data, std::int64_t k, int n_threads) const {
  require(k >= 1, "k must be positive");
  require(n_threads >= 1, "n_threads must be positive");
  const Csr x = checked_csr("X", indptr, indices, data, n_features());
  const std::int64_t n_blocks = (x.n_rows + kBlock - 1) / kBlock;
  std::vector<std::vector<Hit>> found(static_cast<std::size_t>(n_blocks));
  std::vector<std::int64_t> start(static_cast<std::size_t>(x.n_rows) + 1, 0);
  parallel_for(n_blocks, n_threads, 1, [&](std::int64_t begin, std::int64_t end, int) {
    auto scratch = label_pool_.take([] { return std::make_unique<std::vector<double>>(); });
    std::vector<double>& dots = *scratch;
    dots.resize(static_cast<std::size_t>(n_labels()));
    std::vector<Hit> hits;
    for (std::int64_t b = begin; b < end; ++b)
      for (std::int64_t i = b * kBlock; i < std::min(x.n_rows, (b + 1) * kBlock); ++i) {
        nearest(x, i, static_cast<std::size_t>(k), dots, hits);
        auto& block = found[static_cast<std::size_t>(b)];
        block.insert(block.end(), hits.begin(), hits.end());
        start[static_cast<std::size_t>(i) + 1] = static_cast<std::int64_t>(hits.size());
      }
    label_pool_.give_back(std::move(scratch));
  });
  for (std::size_t i = 1; i < start.size(); ++i) start[i] += start[i - 1];
  std::vector<std::int32_t> labels;
  std::vector<float> scores;
  labels.reserve(static_cast<std::size_t>(start.back()));
  scores.reserve(static_cast<std::size_t>(start.back()));
  for (auto& block : found) {
    for (const Hit& hit : block) {
      labels.push_back(hit.label);
      scores.push_back(hit.score);
    }
    block = {};
  }
  return {to_array(std::move(start)), to_array(std::move(labels)), to_array(std::move(scores))};
}

}  // namespace metarank
