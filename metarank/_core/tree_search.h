// A search down one tree, level by level, for a block of rows at a time: the nodes at hand, each with the rows that
// visit it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "block_scores.h"
#include "sparse_rows.h"
#include "top_lists.h"

namespace metarank {

// A row at a node, and the cost of the path to it.
struct Visit {
  int32_t node, row;
  float cost;

  bool operator<(const Visit& other) const { return node != other.node ? node < other.node : row < other.row; }
};

// Scratch of one worker.
class TreeSearch {
 public:
  explicit TreeSearch(int64_t n_features)
      : scores_(n_features), costs_(static_cast<size_t>(kRowsPerChunk * kMaxBlockSlots)) {}

  // From the root on, enter(visit) says whether the search goes on below a node. Of those where it does, push(open,
  // visit, costs, first slot, number of slots) sees the costs of the edges, block by block, and puts the children that
  // are nodes into the row's list of `open`; the `beam` of smallest cost make up the next level. `weights` are as
  // WeightBlocksView has them.
  template <typename Weights, typename Enter, typename Push>
  void run(const std::vector<SparseRow>& rows, int32_t root, int64_t beam, Link link, const Weights& weights,
           const Enter& enter, const Push& push) {
    const auto n = static_cast<int32_t>(rows.size());
    visits_.clear();
    const auto visit = [&](const Visit& v) {
      if (enter(v)) visits_.push_back(v);
    };
    for (int32_t i = 0; i < n; ++i) visit({root, i, 0.0f});
    while (!visits_.empty()) {
      open_.reset(n, beam);
      std::sort(visits_.begin(), visits_.end());
      for (size_t first = 0; first < visits_.size();) {
        size_t last = first;
        while (last < visits_.size() && visits_[last].node == visits_[first].node) ++last;
        if (last < visits_.size())  // asks for the memory of the node to come
          scores_.expect(weights.block(weights.node_block[visits_[last].node]), rows[visits_[last].row]);
        expand(rows, visits_.data() + first, static_cast<int64_t>(last - first), link, weights, push);
        first = last;
      }
      visits_.clear();
      for (int32_t i = 0; i < n; ++i) {
        int64_t m;
        const CostKey* best = open_.best(i, &m);
        for (int64_t j = 0; j < m; ++j) visit({best[j].id(), i, best[j].cost()});
      }
    }
  }

 private:
  static constexpr int64_t kRowsPerChunk = 64;  // whose margins are computed together

  // All visits of one node.
  template <typename Weights, typename Push>
  void expand(const std::vector<SparseRow>& rows, const Visit* visits, int64_t n, Link link, const Weights& weights,
              const Push& push) {
    int64_t n_values = 0;
    for (int64_t i = 0; i < n; ++i) n_values += rows[visits[i].row].size;
    for (int64_t b = weights.node_block[visits->node]; b < weights.node_block[visits->node + 1]; ++b) {
      const WeightBlock block = weights.block(b);
      scores_.open(block, n_values);
      const int64_t stride = scores_.stride();
      for (int64_t begin = 0; begin < n; begin += kRowsPerChunk) {
        const int64_t m = std::min(kRowsPerChunk, n - begin);
        const SparseRow* chunk[kRowsPerChunk];
        for (int64_t i = 0; i < m; ++i) chunk[i] = &rows[visits[begin + i].row];
        scores_.margins(chunk, m, costs_.data());
        edge_costs(link, costs_.data(), m * stride);
        for (int64_t i = 0; i < m; ++i)
          push(open_, visits[begin + i], costs_.data() + i * stride, weights.block_slot[b], block.n_slots);
      }
      scores_.close();
    }
  }

  BlockScores scores_;
  TopLists open_;
  std::vector<Visit> visits_;
  std::vector<float> costs_;
};

}  // namespace metarank
