// Costs of the edges of one block for many queries. The cost of an edge is -log of its probability.
//
// Three ways to the same bytes. A few queries look their features up in the block's buckets. More first
// lay the block open: a table from feature to row. Many turn its rows into dense vectors; absent
// features meet a row of zeros, which changes no sum, so there is no branch.
#pragma once

#include <cstdint>
#include <vector>

#include "sparse_rows.h"
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
void edge_costs(Link link, float* margins, int64_t n);

// exp(-cost) in place, any n. Costs above kLargestCost count as that.
constexpr float kLargestCost = 80.0f;
void probabilities(float* costs, int64_t n);

// Scratch of one worker.
class BlockScores {
 public:
  explicit BlockScores(int64_t n_features) : n_features_(n_features) {}

  // n_values: the stored values of all queries to come before `close`.
  void open(const WeightBlock& block, int64_t n_values);
  void close();

  // Asks for the memory that a query's features need in a block soon to be opened.
  static void expect(const WeightBlock& block, const SparseRow& x);

  // Margins of m queries, a row of `stride()` floats each; what stands beyond the block's slots is 0.
  int64_t stride() const { return stride_; }
  void margins(const SparseRow* const* queries, int64_t m, float* out);

 private:
  enum class Layout { buckets, rows, dense };

  // A row of the block and the query's value of its feature.
  struct Found {
    WeightRow row;
    float x;
  };
  void find_rows(const SparseRow& x);  // to found_
  void fill_dense();

  int64_t n_features_;
  WeightBlock block_{};
  Layout layout_ = Layout::buckets;
  int64_t stride_ = 0;
  std::vector<uint32_t> row_of_;   // by feature: its position in rows_, 0 for none
  std::vector<int32_t> features_;  // of the rows
  std::vector<WeightRow> rows_;         // the first is empty
  std::vector<float> dense_;            // panels of 32 slots (the last narrower), each (rows, width)
  std::vector<Found> found_;
};

}  // namespace metarank
