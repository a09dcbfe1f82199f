#include "names.h"

#include <cmath>

#include "sparse_rows.h"

namespace metarank {

namespace {

constexpr int64_t kBlock = 64;

float cosine(double dot, double a, double b) { return a > 0.0 && b > 0.0 ? static_cast<float>(dot / (a * b)) : 0.0F; }

}  // namespace

LabelText::LabelText(const CsrView& text) : labels_of_(require_canonical(text, "label_text"), text.n_columns, 0) {
  indptr_.assign(text.indptr.data(), text.indptr.data() + text.indptr.shape(0));
  words_.assign(text.indices.data(), text.indices.data() + text.indices.shape(0));
  values_.assign(text.data.data(), text.data.data() + text.data.shape(0));
  for (size_t l = 0; l + 1 < indptr_.size(); ++l) {
    const int64_t first = indptr_[l];
    const SparseRow row{words_.data() + first, values_.data() + first, indptr_[l + 1] - first};
    norm_.push_back(std::sqrt(row.sq_norm()));
  }
}

template <typename Of>
void LabelText::for_each_pair(const SparseRows& x, const Indptr& indptr, const Ids& labels, int n_threads,
                              const Of& of) const {
  require_pairs(indptr, labels, x.n_rows, n_labels());
  parallel_for(x.n_rows, n_threads, 16, [&](int64_t begin, int64_t end, int) {
    const auto value = word_pool_.take();
    value->resize(n_features());
    for (int64_t i = begin; i < end; ++i) {
      const SparseRow row = x.row(i);
      for (int64_t j = 0; j < row.size; ++j) (*value)[row.index[j]] = row.value[j];
      for (int64_t p = indptr(i); p < indptr(i + 1); ++p) of(i, value->data(), p, labels(p));
      for (int64_t j = 0; j < row.size; ++j) (*value)[row.index[j]] = 0.0F;
    }
  });
}

Array2<float> LabelText::evidence(const CsrView& X, Indptr indptr, Ids labels, int n_threads) const {
  const size_t m = labels.shape(0);
  std::vector<float> out(4 * m);
  const SparseRows rows = rows_of(X);
  std::vector<double> x_norm(rows.n_rows);
  for (int64_t i = 0; i < rows.n_rows; ++i) x_norm[i] = std::sqrt(rows.row(i).sq_norm());
  for_each_pair(rows, indptr, labels, n_threads, [&](int64_t i, const float* x, int64_t pair, int32_t label) {
    double dot = 0.0, weight = 0.0, weight_present = 0.0;
    int64_t present = 0;
    for (int64_t p = indptr_[label]; p < indptr_[label + 1]; ++p) {
      const double w = values_[p];
      const float v = x[words_[p]];
      weight += std::fabs(w);
      if (v == 0.0F) continue;
      dot += v * w;
      weight_present += std::fabs(w);
      ++present;
    }
    const auto words = static_cast<double>(indptr_[label + 1] - indptr_[label]);
    out[pair] = cosine(dot, x_norm[i], norm_[label]);
    out[m + pair] = words > 0.0 ? static_cast<float>(static_cast<double>(present) / words) : 0.0F;
    out[2 * m + pair] = weight > 0.0 ? static_cast<float>(weight_present / weight) : 0.0F;
    out[3 * m + pair] = static_cast<float>(words);
  });
  return to_array(std::move(out), 4, m);
}

Array1<float> LabelText::weighed(const CsrView& X, Indptr indptr, Ids labels, Values present, Values absent,
                                 int n_threads) const {
  require(static_cast<int64_t>(present.shape(0)) == n_features() && present.shape(0) == absent.shape(0),
          "present and absent must have one value a feature");
  std::vector<float> out(labels.shape(0));
  for_each_pair(rows_of(X), indptr, labels, n_threads, [&](int64_t, const float* x, int64_t pair, int32_t label) {
    double sum = 0.0;
    for (int64_t p = indptr_[label]; p < indptr_[label + 1]; ++p)
      sum += x[words_[p]] != 0.0F ? present(words_[p]) : absent(words_[p]);
    out[pair] = static_cast<float>(sum);
  });
  return to_array(std::move(out));
}

template <typename Visit>
void LabelText::for_each_posting(const SparseRow& x, const Visit& visit) const {
  for (int64_t j = 0; j < x.size; ++j)
    if (x.value[j] != 0.0F)
      for (int64_t q = labels_of_.start[x.index[j]]; q < labels_of_.start[x.index[j] + 1]; ++q)
        visit(labels_of_.row[q], x.value[j], labels_of_.value[q]);
}

std::tuple<Array1<int64_t>, Array1<int32_t>> LabelText::held(const CsrView& X, int n_threads) const {
  const SparseRows x = rows_of(X);
  auto lists = ListsOfRows::of(x.n_rows, n_threads, kBlock, [&](int64_t begin, int64_t end, ListsOfRows& out) {
    std::vector<int64_t> lacking(n_labels());  // words of each label that the row is not yet known to have
    for (size_t l = 0; l < lacking.size(); ++l) lacking[l] = indptr_[l + 1] - indptr_[l];
    std::vector<int32_t> labels;
    for (int64_t i = begin; i < end; ++i) {
      labels.clear();
      for_each_posting(x.row(i), [&](int32_t label, float, float) {
        if (--lacking[label] == 0) labels.push_back(label);
      });
      for_each_posting(x.row(i), [&](int32_t label, float, float) { ++lacking[label]; });
      std::sort(labels.begin(), labels.end());
      for (const int32_t label : labels) out.add(label, 0.0F);
      out.end_row();
    }
  });
  return {std::move(lists.indptr), std::move(lists.labels)};
}

LabelLists LabelText::shortlist(const CsrView& X, int64_t k, int n_threads) const {
  require(k >= 1, "k must be positive");
  const SparseRows x = rows_of(X);
  return ListsOfRows::of(x.n_rows, n_threads, kBlock, [&](int64_t begin, int64_t end, ListsOfRows& lists) {
    const auto dots = label_pool_.take();
    dots->resize(n_labels());
    std::vector<Scored> hits;
    for (int64_t i = begin; i < end; ++i) {
      hits.clear();
      for_each_posting(x.row(i), [&](int32_t label, double v, double w) {
        double& dot = (*dots)[label];
        if (dot == 0.0) hits.push_back({0.0, label});  // again after a sum that cancelled: see below
        dot += v * w;
      });
      const double x_norm = std::sqrt(x.row(i).sq_norm());
      for (Scored& hit : hits) {  // the second of two entries finds the dot already cleared, and goes
        hit.score = cosine((*dots)[hit.label], x_norm, norm_[hit.label]);
        (*dots)[hit.label] = 0.0;
      }
      std::erase_if(hits, [](const Scored& hit) { return !(hit.score > 0.0); });
      keep_best(hits, k);
      lists.add(hits);
      lists.end_row();
    }
  });
}

}  // namespace metarank
