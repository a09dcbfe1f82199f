#include "regression_errors.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <vector>

#include "arrays.h"
#include "parallel.h"
#include "topk.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlock = 256;

struct Truth {
  const std::int32_t* labels;
  const double* values;
  std::int64_t n;

  double of(std::int32_t label) const {
    const auto* found = std::lower_bound(labels, labels + n, label);
    return found != labels + n && *found == label ? values[found - labels] : 0.0;
  }
};

struct Scratch {
  std::vector<std::int64_t> order;   // entries of the row by ascending label
  std::vector<double> errors;        // those that are not 0, by ascending label
  std::vector<std::int64_t> places;  // the k best entries
};

template <typename T>
void by_label(const ScoreRow<T>& row, std::vector<std::int64_t>& order) {
  order.resize(static_cast<std::size_t>(row.n));
  std::iota(order.begin(), order.end(), std::int64_t{0});
  if (row.labels != nullptr && !std::is_sorted(row.labels, row.labels + row.n))
    std::sort(order.begin(), order.end(),
              [&row](std::int64_t a, std::int64_t b) { return row.labels[a] < row.labels[b]; });
}

template <typename T>
void find_errors(const ScoreRow<T>& row, const Truth& y, Scratch& s) {
  by_label(row, s.order);
  s.errors.clear();
  const auto add = [&s](double error) {
    if (error != 0.0) s.errors.push_back(error);
  };
  std::int64_t q = 0;
  for (const std::int64_t j : s.order) {
    if (!row.listed(j)) continue;
    const std::int32_t label = row.label(j);
    for (; q < y.n && y.labels[q] < label; ++q) add(y.values[q]);
    const bool relevant = q < y.n && y.labels[q] == label;
    add(std::fabs(static_cast<double>(row.scores[j]) - (relevant ? y.values[q++] : 0.0)));
  }
  for (; q < y.n; ++q) add(y.values[q]);
}

void keep_largest(std::vector<double>& errors, std::int64_t k) {
  if (static_cast<std::int64_t>(errors.size()) <= k) return;
  std::nth_element(errors.begin(), errors.begin() + k, errors.end(), std::greater<>());
  errors.resize(static_cast<std::size_t>(k));
  std::sort(errors.begin(), errors.end(), std::greater<>());
}

// body(row, truth, i, scratch) for every row.
template <typename T, typename RowOf, typename Body>
void each_row(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values, std::int64_t n,
              int n_threads, const RowOf& row_of, const Body& body) {
  require(static_cast<std::int64_t>(y_indptr.shape(0)) == n + 1, "scores must have one row for each row of Y");
  require(y_labels.shape(0) == y_values.shape(0), "y_labels and y_values must have the same length");
  require_indptr(y_indptr, static_cast<std::int64_t>(y_labels.shape(0)), "y_indptr");
  const std::int64_t* start = y_indptr.data();
  parallel_for(n, n_threads, kBlock, [&](std::int64_t begin, std::int64_t end, int) {
    Scratch scratch;
    for (std::int64_t i = begin; i < end; ++i)
      body(row_of(i), Truth{y_labels.data() + start[i], y_values.data() + start[i], start[i + 1] - start[i]},
           static_cast<std::size_t>(i), scratch);
  });
}

// A prediction is a finite number; -inf says that there is none.
template <typename T>
void require_predictions(const T* scores, std::size_t n) {
  for (std::size_t j = 0; j < n; ++j)
    require(std::isfinite(scores[j]) || scores[j] == -std::numeric_limits<T>::infinity(),
            "scores must be finite predictions of relevance, or -inf for a label that is not listed");
}

// (sum of the k largest errors, sum of their squares) of each row.
template <typename T, typename RowOf>
ErrorSums largest(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values, std::int64_t n,
                  std::int64_t k, int n_threads, const RowOf& row_of) {
  require(k >= 1, "k must be positive");
  std::vector<double> sum(static_cast<std::size_t>(n)), sum_of_squares(static_cast<std::size_t>(n));
  each_row<T>(y_indptr, y_labels, y_values, n, n_threads, row_of,
              [&](const ScoreRow<T>& row, const Truth& y, std::size_t i, Scratch& s) {
                find_errors(row, y, s);
                keep_largest(s.errors, k);
                for (const double error : s.errors) {
                  sum[i] += error;
                  sum_of_squares[i] += error * error;
                }
              });
  return std::make_tuple(to_array(std::move(sum)), to_array(std::move(sum_of_squares)));
}

// Sum of the errors of the k labels with the greatest scores of each row.
template <typename T, typename RowOf>
Array1<double> predicted(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values, std::int64_t n,
                         std::int64_t k, int n_threads, const RowOf& row_of) {
  require(k >= 1, "k must be positive");
  std::vector<double> sum(static_cast<std::size_t>(n));
  each_row<T>(y_indptr, y_labels, y_values, n, n_threads, row_of,
              [&](const ScoreRow<T>& row, const Truth& y, std::size_t i, Scratch& s) {
                top_k(row, k, s.places);
                for (const std::int64_t j : s.places)
                  sum[i] += std::fabs(static_cast<double>(row.scores[j]) - y.of(row.label(j)));
              });
  return to_array(std::move(sum));
}

template <typename T>
auto dense_rows(const In2<T>& scores) {
  const T* first = scores.data();
  const auto width = static_cast<std::int64_t>(scores.shape(1));
  return [first, width](std::int64_t i) { return ScoreRow<T>{nullptr, first + i * width, width}; };
}

template <typename T>
auto listed_rows(const In1<std::int64_t>& indptr, const In1<std::int32_t>& labels, const In1<T>& scores) {
  require_indptr(indptr, static_cast<std::int64_t>(labels.shape(0)), "indptr");
  require(scores.shape(0) == labels.shape(0), "scores and labels must have the same length");
  const std::int64_t* start = indptr.data();
  const std::int32_t* label = labels.data();
  const T* score = scores.data();
  return [start, label, score](std::int64_t i) {
    return ScoreRow<T>{label + start[i], score + start[i], start[i + 1] - start[i]};
  };
}

}  // namespace

template <typename T>
ErrorSums largest_errors_dense(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values,
                               In2<T> scores, std::int64_t k, int n_threads) {
  require_predictions(scores.data(), scores.size());
  return largest<T>(y_indptr, y_labels, y_values, static_cast<std::int64_t>(scores.shape(0)), k, n_threads,
                    dense_rows<T>(scores));
}

template <typename T>
ErrorSums largest_errors_listed(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values,
                                In1<std::int64_t> indptr, In1<std::int32_t> labels, In1<T> scores, std::int64_t k,
                                int n_threads) {
  const auto row_of = listed_rows<T>(indptr, labels, scores);
  require_predictions(scores.data(), scores.size());
  return largest<T>(y_indptr, y_labels, y_values, static_cast<std::int64_t>(indptr.shape(0)) - 1, k, n_threads,
                    row_of);
}

template <typename T>
Array1<double> predicted_errors_dense(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values,
                                      In2<T> scores, std::int64_t k, int n_threads) {
  require_predictions(scores.data(), scores.size());
  return predicted<T>(y_indptr, y_labels, y_values, static_cast<std::int64_t>(scores.shape(0)), k, n_threads,
                      dense_rows<T>(scores));
}

template <typename T>
Array1<double> predicted_errors_listed(In1<std::int64_t> y_indptr, In1<std::int32_t> y_labels, In1<double> y_values,
                                       In1<std::int64_t> indptr, In1<std::int32_t> labels, In1<T> scores,
                                       std::int64_t k, int n_threads) {
  const auto row_of = listed_rows<T>(indptr, labels, scores);
  require_predictions(scores.data(), scores.size());
  return predicted<T>(y_indptr, y_labels, y_values, static_cast<std::int64_t>(indptr.shape(0)) - 1, k, n_threads,
                      row_of);
}

template ErrorSums largest_errors_dense(In1<std::int64_t>, In1<std::int32_t>, In1<double>, In2<float>, std::int64_t, int);
template ErrorSums largest_errors_listed(In1<std::int64_t>, In1<std::int32_t>, In1<double>, In1<std::int64_t>,
                                         In1<std::int32_t>, In1<float>, std::int64_t, int);
template Array1<double> predicted_errors_dense(In1<std::int64_t>, In1<std::int32_t>, In1<double>, In2<float>, std::int64_t, int);
template Array1<double> predicted_errors_listed(In1<std::int64_t>, In1<std::int32_t>, In1<double>, In1<std::int64_t>,
                                                In1<std::int32_t>, In1<float>, std::int64_t, int);
template ErrorSums largest_errors_dense(In1<std::int64_t>, In1<std::int32_t>, In1<double>, In2<double>, std::int64_t, int);
template ErrorSums largest_errors_listed(In1<std::int64_t>, In1<std::int32_t>, In1<double>, In1<std::int64_t>,
                                         In1<std::int32_t>, In1<double>, std::int64_t, int);
template Array1<double> predicted_errors_dense(In1<std::int64_t>, In1<std::int32_t>, In1<double>, In2<double>, std::int64_t, int);
template Array1<double> predicted_errors_listed(In1<std::int64_t>, In1<std::int32_t>, In1<double>, In1<std::int64_t>,
                                                In1<std::int32_t>, In1<double>, std::int64_t, int);

}  // namespace metarank
