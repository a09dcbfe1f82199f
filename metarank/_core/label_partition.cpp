#include "label_partition.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>

#include "arrays.h"
#include "parallel.h"
#include "sparse_rows.h"
#include "rng.h"
#include "simd.h"

namespace metarank {

namespace {

constexpr int64_t kChunk = 1024;    // labels whose sum is formed on its own; the sums are added in order
constexpr int64_t kLong = 1 << 14;  // labels from which one cut is worth several threads
constexpr int kFreeDepth = 8;       // levels from the root whose groups need not be balanced

using Labels = std::span<const int32_t>;

struct DenseVectors {
  const float* data;
  int64_t width;
  void project(Labels labels, const float* direction, float* scores) const;
  void add(Labels labels, float* sum) const;
};

METARANK_KERNEL void dense_project(const float* V, int64_t d, const int32_t* labels, size_t n, const float* direction,
                                   float* scores) {
  for (size_t i = 0; i < n; ++i) scores[i] = dot(V + labels[i] * d, direction, d);
}

METARANK_KERNEL void dense_sum(const float* V, int64_t d, const int32_t* labels, size_t n, float* sum) {
  for (size_t i = 0; i < n; ++i) {
    const float* v = V + labels[i] * d;
    for (int64_t j = 0; j < d; ++j) sum[j] += v[j];
  }
}

void DenseVectors::project(Labels labels, const float* direction, float* scores) const {
  by_level<dense_project>(data, width, labels.data(), labels.size(), direction, scores);
}
void DenseVectors::add(Labels labels, float* sum) const {
  by_level<dense_sum>(data, width, labels.data(), labels.size(), sum);
}

struct SparseVectors {
  SparseRows rows;
  int64_t width;
  void project(Labels labels, const float* direction, float* scores) const {
    for (size_t i = 0; i < labels.size(); ++i) {
      float s = 0.0f;
      for (int64_t p = rows.indptr[labels[i]]; p < rows.indptr[labels[i] + 1]; ++p)
        s += rows.data[p] * direction[rows.indices[p]];
      scores[i] = s;
    }
  }
  void add(Labels labels, float* sum) const {
    for (const int32_t l : labels)
      for (int64_t p = rows.indptr[l]; p < rows.indptr[l + 1]; ++p) sum[rows.indices[p]] += rows.data[p];
  }
};

template <typename Vectors>
void project(const Vectors& V, Labels labels, const float* direction, float* scores, int n_threads) {
  parallel_for(static_cast<int64_t>(labels.size()), n_threads, kChunk, [&](int64_t begin, int64_t end, int) {
    V.project(labels.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)), direction, scores + begin);
  });
}

// The unit vector along the labels' sum into `centre`; returns the sum's length. The chunks' own sums are
// formed side by side and added in their order, a few chunks at a time.
template <typename Vectors>
double find_centre(const Vectors& V, Labels labels, int n_threads, float* centre) {
  constexpr int64_t kTogether = 16;
  const auto m = static_cast<int64_t>(labels.size());
  const int64_t width = V.width;
  std::fill(centre, centre + width, 0.0f);
  std::vector<float> sums(static_cast<size_t>(std::min(kTogether, (m + kChunk - 1) / kChunk) * width));
  for (int64_t first = 0; first < m; first += kTogether * kChunk) {
    const int64_t count = std::min(kTogether * kChunk, m - first);
    std::fill(sums.begin(), sums.end(), 0.0f);
    parallel_for(count, n_threads, kChunk, [&](int64_t begin, int64_t end, int) {
      V.add(labels.subspan(static_cast<size_t>(first + begin), static_cast<size_t>(end - begin)),
            sums.data() + begin / kChunk * width);
    });
    for (int64_t c = 0; c * kChunk < count; ++c)
      for (int64_t j = 0; j < width; ++j) centre[j] += sums[c * width + j];
  }
  double sq = 0.0;
  for (int64_t j = 0; j < width; ++j) sq += static_cast<double>(centre[j]) * centre[j];
  const double norm = std::sqrt(sq);
  for (int64_t j = 0; j < width && norm > 0.0; ++j) centre[j] = static_cast<float>(centre[j] / norm);
  return norm;
}

// Moves the n_left labels of greatest score to the front; both sides keep their order, ties go by it.
void cut(const std::vector<float>& scores, int64_t n_left, std::span<int32_t> labels) {
  const auto m = labels.size();
  std::vector<uint32_t> rank(m);
  std::iota(rank.begin(), rank.end(), 0u);
  std::nth_element(rank.begin(), rank.begin() + n_left, rank.end(),
                   [&](uint32_t a, uint32_t b) { return scores[a] != scores[b] ? scores[a] > scores[b] : a < b; });
  std::vector<char> is_left(m, 0);
  for (int64_t i = 0; i < n_left; ++i) is_left[rank[i]] = 1;
  std::vector<int32_t> right;
  right.reserve(m - static_cast<size_t>(n_left));
  size_t left = 0;
  for (size_t i = 0; i < m; ++i) {
    if (is_left[i])
      labels[left++] = labels[i];
    else
      right.push_back(labels[i]);
  }
  std::copy(right.begin(), right.end(), labels.begin() + n_left);
}

// Spherical 2-means with sides of n_left and the other labels, from a label drawn at random and the
// one farthest from it: labels go to the sides by v . (centre_1 - centre_2), the centres to the sums of their sides,
// until the objective |sum_1| + |sum_2| (the sum of cosines to the own centre) has stopped to grow. Returns the
// direction.
template <typename Vectors>
std::vector<float> two_means(const Vectors& V, std::span<int32_t> labels, int64_t n_left, const Clustering& how,
                             uint64_t seed, int n_threads) {
  const auto width = static_cast<size_t>(V.width);
  const auto m = static_cast<uint64_t>(labels.size());
  std::vector<float> direction(width), centre(width), scores(labels.size());
  V.add(labels.subspan(hash_pair(seed, 0) % m, 1), direction.data());
  project(V, labels, direction.data(), scores.data(), n_threads);
  const auto farthest = static_cast<size_t>(std::min_element(scores.begin(), scores.end()) - scores.begin());
  V.add(labels.subspan(farthest, 1), centre.data());
  for (size_t j = 0; j < width; ++j) direction[j] -= centre[j];
  double best = 0.0;
  std::vector<int32_t> sides(labels.begin(), labels.end());
  for (int iteration = 0; iteration < how.max_iterations; ++iteration) {
    project(V, labels, direction.data(), scores.data(), n_threads);
    std::copy(labels.begin(), labels.end(), sides.begin());
    cut(scores, n_left, sides);
    const Labels all(sides);
    const auto left = static_cast<size_t>(n_left);
    double objective = find_centre(V, all.first(left), n_threads, direction.data());
    objective += find_centre(V, all.subspan(left), n_threads, centre.data());
    for (size_t j = 0; j < width; ++j) direction[j] -= centre[j];
    if (objective <= best * (1.0 + how.tolerance)) break;
    best = objective;
  }
  return direction;
}

// Cuts the labels, ascending on both sides, the first n_left against the rest.
template <typename Vectors>
void split(const Vectors& V, std::span<int32_t> labels, int64_t n_left, const Clustering& how, uint64_t seed,
           int n_threads) {
  const auto m = static_cast<int64_t>(labels.size());
  std::vector<float> direction;
  if (m <= how.sample) {
    direction = two_means(V, labels, n_left, how, seed, n_threads);
  } else {
    // Every (m / sample)-th label from a random one on: as good as a random sample, and in order.
    std::vector<int32_t> sample(static_cast<size_t>(how.sample));
    const auto offset = static_cast<int64_t>(hash_pair(seed, 1) % static_cast<uint64_t>(m));
    for (int64_t i = 0; i < how.sample; ++i) sample[i] = labels[(offset + i * m / how.sample) % m];
    const auto sample_left = std::clamp<int64_t>(n_left * how.sample / m, 1, how.sample - 1);
    direction = two_means(V, std::span<int32_t>(sample), sample_left, how, seed, n_threads);
  }
  std::vector<float> scores(labels.size());
  project(V, Labels(labels), direction.data(), scores.data(), n_threads);
  cut(scores, n_left, labels);
}

// Labels order[begin, end), to be cut into `groups` of a node.
struct Range {
  int64_t begin, end, groups;
};

struct Tree {
  std::vector<int64_t> child_start;
  std::vector<int32_t> child;
};

// Cuts every range of more than one group once; the halves stand where the whole stood.
template <typename Vectors>
std::vector<Range> cut_once(const Vectors& V, const std::vector<Range>& ranges, std::vector<int32_t>& order,
                            const Clustering& how, uint64_t seed, uint64_t round, int n_threads) {
  auto left_of = [](const Range& r) { return (r.end - r.begin) * (r.groups / 2) / r.groups; };
  auto split_range = [&](const Range& r, int threads) {
    split(V, std::span<int32_t>(order).subspan(static_cast<size_t>(r.begin), static_cast<size_t>(r.end - r.begin)),
          left_of(r), how, hash_pair(hash_pair(seed, round), static_cast<uint64_t>(r.begin)), threads);
  };
  for (const Range& r : ranges)
    if (r.groups > 1 && r.end - r.begin >= kLong) split_range(r, n_threads);
  parallel_for(static_cast<int64_t>(ranges.size()), n_threads, 1, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i) {
      const Range& r = ranges[i];
      if (r.groups > 1 && r.end - r.begin < kLong) split_range(r, 1);
    }
  });
  std::vector<Range> halves;
  for (const Range& r : ranges) {
    if (r.groups == 1) {
      halves.push_back(r);
      continue;
    }
    const int64_t middle = r.begin + left_of(r);
    halves.push_back({r.begin, middle, r.groups / 2});
    halves.push_back({middle, r.end, r.groups - r.groups / 2});
  }
  return halves;
}

// The number of the nearest centre (k, width) of each label; ties go to the lower number.
template <typename Vectors>
std::vector<int32_t> nearest(const Vectors& V, Labels labels, const std::vector<float>& centres, int64_t k) {
  std::vector<int32_t> group(labels.size(), 0);
  std::vector<float> best(labels.size()), scores(labels.size());
  V.project(labels, centres.data(), best.data());
  for (int64_t c = 1; c < k; ++c) {
    V.project(labels, centres.data() + c * V.width, scores.data());
    for (size_t i = 0; i < labels.size(); ++i)
      if (scores[i] > best[i]) {
        best[i] = scores[i];
        group[i] = static_cast<int32_t>(c);
      }
  }
  return group;
}

// Moves the labels of each group together, in the order of the groups; within one they keep theirs. Returns the sizes.
std::vector<int64_t> gather(std::span<int32_t> labels, const std::vector<int32_t>& group, int64_t k) {
  std::vector<int64_t> size(static_cast<size_t>(k), 0), at(static_cast<size_t>(k), 0);
  for (const int32_t c : group) ++size[c];
  for (size_t c = 1; c < at.size(); ++c) at[c] = at[c - 1] + size[c - 1];
  const std::vector<int32_t> before(labels.begin(), labels.end());
  for (size_t i = 0; i < group.size(); ++i) labels[at[group[i]]++] = before[i];
  return size;
}

// Groups the labels by spherical k-means from k labels drawn at random: a label goes to the centre of greatest
// cosine, a centre to the sum of its labels, until the sum of the cosines has stopped to grow. A centre without
// labels stays where it is. Returns the sizes of the groups, which may be 0.
template <typename Vectors>
std::vector<int64_t> k_means(const Vectors& V, std::span<int32_t> labels, int64_t k, const Clustering& how,
                             uint64_t seed) {
  const auto m = static_cast<int64_t>(labels.size());
  const int64_t width = V.width;
  std::vector<int32_t> some(labels.begin(), labels.end());
  const auto drawn = static_cast<size_t>(std::max(k, std::min(m, how.sample)));
  for (size_t i = 0; i < drawn; ++i)  // the first steps of a shuffle
    std::swap(some[i], some[i + hash_pair(seed, i) % (some.size() - i)]);
  some.resize(drawn);
  std::vector<float> centres(static_cast<size_t>(k * width), 0.0f);
  for (int64_t c = 0; c < k; ++c) V.add(Labels(some).subspan(static_cast<size_t>(c), 1), centres.data() + c * width);
  std::sort(some.begin(), some.end());
  double best = 0.0;
  for (int iteration = 0; iteration < how.max_iterations; ++iteration) {
    std::vector<int32_t> grouped = some;
    const std::vector<int64_t> size = gather(grouped, nearest(V, some, centres, k), k);
    double objective = 0.0;
    size_t begin = 0;
    for (int64_t c = 0; c < k; ++c) {
      const auto n = static_cast<size_t>(size[c]);
      if (n > 0) objective += find_centre(V, Labels(grouped).subspan(begin, n), 1, centres.data() + c * width);
      begin += n;
    }
    if (objective <= best * (1.0 + how.tolerance)) break;
    best = objective;
  }
  return gather(labels, nearest(V, labels, centres, k), k);
}

// The groups of the nodes of a level, cut by k-means; those that are to be balanced stay whole.
template <typename Vectors>
std::vector<Range> cut_freely(const Vectors& V, const std::vector<Range>& ranges, std::vector<int32_t>& order,
                              const Clustering& how, uint64_t seed, uint64_t round, int n_threads) {
  std::vector<std::vector<int64_t>> sizes(ranges.size());
  parallel_for(static_cast<int64_t>(ranges.size()), n_threads, 1, [&](int64_t first, int64_t last, int) {
    for (int64_t i = first; i < last; ++i) {
      const Range& r = ranges[i];
      const auto labels =
          std::span<int32_t>(order).subspan(static_cast<size_t>(r.begin), static_cast<size_t>(r.end - r.begin));
      sizes[i] = k_means(V, labels, r.groups, how, hash_pair(hash_pair(seed, round), static_cast<uint64_t>(r.begin)));
    }
  });
  std::vector<Range> groups;
  for (size_t i = 0; i < ranges.size(); ++i) {
    int64_t begin = ranges[i].begin;
    if (*std::max_element(sizes[i].begin(), sizes[i].end()) == ranges[i].end - begin) {
      groups.push_back(ranges[i]);
      continue;
    }
    for (const int64_t size : sizes[i]) {
      if (size > 0) groups.push_back({begin, begin + size, 1});
      begin += size;
    }
  }
  return groups;
}

int64_t children_of(int64_t n_labels, const Clustering& how) {
  const int64_t leaves = (n_labels + how.max_leaf - 1) / how.max_leaf;
  int64_t below = 1;  // leaves of a child, where the levels below are full
  while (below * how.branching < leaves) below *= how.branching;
  return (leaves + below - 1) / below;
}

template <typename Vectors>
Tree grow(const Vectors& V, std::vector<int32_t> order, const Clustering& how, uint64_t seed, int n_threads) {
  Tree tree{{0}, {}};
  std::vector<Range> nodes{{0, static_cast<int64_t>(order.size()), 1}};
  uint64_t round = 0;
  int32_t n_nodes = 1;
  for (int depth = 0; !nodes.empty(); ++depth) {
    std::vector<Range> groups;  // of the nodes that are not leaves, node after node
    for (const Range& node : nodes) {
      const int64_t m = node.end - node.begin;
      if (m > how.max_leaf)
        groups.push_back({node.begin, node.end, children_of(m, how)});
    }
    if (!how.balanced && depth < kFreeDepth) groups = cut_freely(V, groups, order, how, seed, round++, n_threads);
    auto is_whole = [](const Range& r) { return r.groups == 1; };
    while (!std::all_of(groups.begin(), groups.end(), is_whole))
      groups = cut_once(V, groups, order, how, seed, round++, n_threads);
    std::vector<Range> next;
    size_t g = 0;
    for (const Range& node : nodes) {
      if (node.end - node.begin <= how.max_leaf)
        for (int64_t i = node.begin; i < node.end; ++i) tree.child.push_back(~order[i]);
      else
        for (; g < groups.size() && groups[g].begin < node.end; ++g) {
          if (groups[g].end - groups[g].begin == 1) {
            tree.child.push_back(~order[groups[g].begin]);
          } else {
            tree.child.push_back(n_nodes++);
            next.push_back(groups[g]);
          }
        }
      tree.child_start.push_back(static_cast<int64_t>(tree.child.size()));
    }
    nodes = std::move(next);
  }
  return tree;
}

template <typename Vectors>
LabelTree grow_checked(const Vectors& V, int64_t n_labels, const In1<int32_t>& labels, const Clustering& how,
                       int n_threads) {
  for (size_t i = 0; i < labels.shape(0); ++i)
    require(labels(i) >= 0 && labels(i) < n_labels && (i == 0 || labels(i - 1) < labels(i)),
            "labels must ascend within [0, n_labels)");
  require(how.branching >= 2 && how.max_leaf >= 1, "branching must be at least 2 and max_leaf at least 1");
  require(how.max_iterations >= 1 && how.sample >= 2, "max_iterations must be at least 1 and sample at least 2");
  Tree tree = grow(V, std::vector<int32_t>(labels.data(), labels.data() + labels.shape(0)), how, how.seed, n_threads);
  return std::make_tuple(to_array(std::move(tree.child_start)), to_array(std::move(tree.child)));
}

}  // namespace

LabelTree partition_labels_dense(In2<float> V, In1<int32_t> labels, const Clustering& how, int n_threads) {
  const DenseVectors vectors{V.data(), static_cast<int64_t>(V.shape(1))};
  return grow_checked(vectors, static_cast<int64_t>(V.shape(0)), labels, how, n_threads);
}

LabelTree partition_labels_sparse(const CsrView& V, In1<int32_t> labels, const Clustering& how, int n_threads) {
  const SparseVectors vectors{require_csr(V), V.n_columns};
  return grow_checked(vectors, static_cast<int64_t>(V.indptr.shape(0)) - 1, labels, how, n_threads);
}

}  // namespace metarank
