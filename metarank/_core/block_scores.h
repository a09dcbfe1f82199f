// Costs of the edges of one block for many queries. The cost of an edge is -log of its probability.
//
// Two ways to the same bytes. A few queries look their features up in the block's buckets. Many first
// lay the block open: a table from feature to row, and the rows as dense vectors where the block is
// narrow; absent features meet a row of zeros, so there is no branch.
#pragma once

#include <cstdint>
#include <vector>

#include "inverted_index.h"
#include "weight_blocks.h"

namespace metarank {

// How a margin z becomes the cost of an edge.
enum class Link : int {
  logistic = 0,       // log(1 + exp(-z))
  hinge = 1,          // max(0, 1 - z)
  squared_hinge = 2,  // max(0, 1 - z)^2
  cubed_hinge = 3,    // max(0, 1 - z)^3
  hinge_to_4 = 4,     // max(0, 1 - z)^4
  hinge_to_5 = 5,     // max(0, 1 - z)^5
};

constexpr int kLinks = 6;

// In place; n is a multiple of 8. Never NaN, never negative.
void edge_costs(Link link, float* margins, std::int64_t n);

// exp(-cost) in place, any n. Costs above kLargestCost count as that.
constexpr float kLargestCost = 80.0f;
void probabilities(float* costs, std::int64_t n);

// Scratch of one worker.
class BlockScores {
 public:
  explicit BlockScores(std::int64_t n_features) : n_features_(n_features) {}

  // n_values: the stored values of all queries to come before `close`.
  void open(const WeightBlock& block, std::int64_t n_values);
  void close();

  // Margins of m queries, a row of `stride()` floats each; what stands beyond the block's slots is 0.
  std::int64_t stride() const { return stride_; }
  void margins(const SparseRow* const* queries, std::int64_t m, float* out);

 private:
  enum class Layout { buckets, rows, dense };

  // A row of the block and the query's value of its feature.
  struct Found {
    const std::uint8_t* entries;
    std::int32_t count;
    float x;
  };
  void find_rows(const SparseRow& x);  // to found_

  std::int64_t n_features_;
  WeightBlock block_{};
  Layout layout_ = Layout::buckets;
  std::int64_t stride_ = 0;
  std::vector<std::uint32_t> row_of_;    // by feature: 0 for none, else its row + 1
  std::vector<std::int32_t> features_;   // of the rows
  std::vector<WeightRow> rows_;          // Layout::rows: rows_[0] is empty
  std::vector<float> dense_;             // Layout::dense: the first row is zero
  std::vector<Found> found_;
};

}  // namespace metarank
