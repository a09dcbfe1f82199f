#include "inverted_index.h"

#include <algorithm>
#include <cmath>

#include "cpu_level.h"
#include "float8.h"

namespace metarank {

namespace {

// What reading a row costs beside its entries, and how many rows are added in the time of one posting where all are
// stored.
constexpr double kOfRow = 50.0;
constexpr int64_t kAtATime = 8;
constexpr int64_t kRowsForBounds = 1 << 15;
// Lengths whose squares, and quotients of them, are as exact in float as `slack` takes them to be.
constexpr double kLeastSquare = 1e-20, kMostSquare = 1e20;
constexpr float kRoundedUp = 1.0f + 1e-6f;
constexpr double kLateSteps = 254.0;  // of bytes; a length may be a rounding above 1

// Makes sums bounds, and tells the greatest of each block.
METARANK_KERNEL void to_bounds(float* sum, const float* inverse, float late, const uint8_t* of_late, float slack,
                               int64_t n, float* greatest) {
  constexpr int64_t kBlock = InvertedIndex::kBlock;
  int64_t begin = 0;
  for (; begin + kBlock <= n; begin += kBlock) {
    float later[kBlock], most[8];
    for (int64_t i = 0; i < kBlock; ++i) later[i] = late * static_cast<float>(of_late[begin + i]) + slack;
    Float8 all = float8(0.0f);
    for (int64_t i = 0; i < kBlock; i += 8) {
      const Float8 bound = load_float8(sum + begin + i) * load_float8(inverse + begin + i) + load_float8(later + i);
      store_float8(sum + begin + i, bound);
      all = larger(all, bound);
    }
    store_float8(most, all);
    float& first = greatest[begin / kBlock] = most[0];
    for (int i = 1; i < 8; ++i) first = most[i] > first ? most[i] : first;
  }
  for (int64_t i = begin; i < n; ++i) {
    sum[i] = sum[i] * inverse[i] + (late * static_cast<float>(of_late[i]) + slack);
    greatest[begin / kBlock] = i > begin && greatest[begin / kBlock] > sum[i] ? greatest[begin / kBlock] : sum[i];
  }
}

}  // namespace

// A feature that at least one in four rows holds is stored as a column of all rows.
InvertedIndex::InvertedIndex(const CsrView& rows)
    : rows_(require_canonical(rows)), postings_(rows_, rows.n_columns, 4) {
  for (size_t i = 0; i + 1 < rows.indptr.shape(0); ++i) {
    const int64_t first = rows.indptr(i);
    const SparseRow row{rows.indices.data() + first, rows.data.data() + first, rows.indptr(i + 1) - first};
    sq_norm_.push_back(row.sq_norm());
    l1_norm_.push_back(row.l1_norm());
    inverse_norm_.push_back(sq_norm_[i] > 0.0 ? 1.0 / std::sqrt(sq_norm_[i]) : 0.0);
    max_sq_norm_ = std::max(max_sq_norm_, sq_norm_[i]);
    max_l1_norm_ = std::max(max_l1_norm_, l1_norm_[i]);
  }
  mean_size_ = static_cast<double>(postings_.row.size()) / static_cast<double>(std::max<int64_t>(1, n_rows()));
  prepare_bounds();
}

void InvertedIndex::prepare_bounds() {
  has_bounds_ = n_rows() >= kRowsForBounds;
  for (const double square : sq_norm_)
    has_bounds_ &= square == 0.0 || (square > kLeastSquare && square < kMostSquare);
  if (!has_bounds_) return;
  inverse_.assign(inverse_norm_.begin(), inverse_norm_.end());
  for (int64_t i = 0; i < n_rows(); ++i) {
    const SparseRow row = rows_.row(i);
    double square = 0.0;
    for (int64_t j = 0; j < row.size; ++j)
      if (postings_.is_full(row.index[j])) square += static_cast<double>(row.value[j]) * row.value[j];
    late_.push_back(static_cast<uint8_t>(std::ceil(std::sqrt(square) * inverse_norm_[i] * kLateSteps)));
  }
}

ScratchPool<CosineBounds>::Lease InvertedIndex::cosine_bounds(const SparseRow& x) const {
  auto out = bounds_.take();
  out->of_row.assign(sq_norm_.size(), 0.0f);
  const double inverse = 1.0 / std::sqrt(x.sq_norm());
  double square = 0.0;
  for (int64_t j = 0; j < x.size; ++j) {
    const double v = x.value[j] * inverse;
    if (postings_.is_full(x.index[j]))
      square += v * v;
    else
      postings_.add(x.index[j], static_cast<float>(v), n_rows(), out->of_row.data());
  }
  const float late = static_cast<float>(std::sqrt(square) / kLateSteps) * kRoundedUp;
  // Each product and each sum is rounded once, and the terms of a cosine sum to 1 at most.
  const float slack = static_cast<float>(x.size + 16) * std::numeric_limits<float>::epsilon();
  out->of_block.resize((out->of_row.size() + kBlock - 1) / kBlock);
  by_level<to_bounds>(out->of_row.data(), inverse_.data(), late, late_.data(), slack, n_rows(), out->of_block.data());
  return out;
}

ScratchPool<SpreadRow>::Lease InvertedIndex::spread(const SparseRow& x) const {
  auto out = spread_.take();
  out->value.resize(static_cast<size_t>(n_features()), 0.0f);
  for (int64_t j = 0; j < x.size; ++j) out->value[x.index[j]] = x.value[j];
  return out;
}

void InvertedIndex::clear(const SparseRow& x, SpreadRow& spread) const {
  for (int64_t j = 0; j < x.size; ++j) spread.value[x.index[j]] = 0.0f;
}

// Features that x does not have add nothing, not even to the last bit.
void InvertedIndex::add_row(const SpreadRow& spread, int32_t y, double& dot, double* l1) const {
  const SparseRow row = rows_.row(y);
  for (int64_t j = 0; j < row.size; ++j) {
    const double v = spread.value[row.index[j]], w = row.value[j];
    dot += v * w;
    if (l1 != nullptr) *l1 += std::fabs(v - w) - std::fabs(v) - std::fabs(w);
  }
}

bool InvertedIndex::is_dearer(const SparseRow& x, int64_t n_asked) const {
  if (n_asked == kAny) return false;
  int64_t cost = n_rows() / kAtATime;
  for (int64_t j = 0; j < x.size; ++j)
    cost += postings_.is_full(x.index[j]) ? n_rows() / kAtATime : postings_.size(x.index[j]);
  return static_cast<double>(cost) > static_cast<double>(n_asked) * (mean_size_ + kOfRow);
}

std::unique_ptr<Overlaps> InvertedIndex::overlaps(const SparseRow& x, bool with_l1, int64_t n_asked) const {
  std::unique_ptr<Overlaps> sums;
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::find_if(kept_.begin(), kept_.end(), [&](const auto& kept) {
      return kept->with_l1 == with_l1 &&
             std::equal(kept->index.begin(), kept->index.end(), x.index, x.index + x.size) &&
             std::equal(kept->value.begin(), kept->value.end(), x.value, x.value + x.size);
    });
    const bool is_known = known != kept_.end();
    if (!is_known && is_dearer(x, n_asked)) return nullptr;
    if (!kept_.empty()) {
      const auto taken = is_known ? known : kept_.begin();
      sums = std::move(*taken);
      kept_.erase(taken);
    }
    if (is_known) return sums;
  }
  if (sums == nullptr) sums = std::make_unique<Overlaps>();
  clear(*sums);
  sums->index.assign(x.index, x.index + x.size);
  sums->value.assign(x.value, x.value + x.size);
  sums->with_l1 = with_l1;
  add(x, *sums);
  return sums;
}

void InvertedIndex::give_back(std::unique_ptr<Overlaps> sums) const {
  if (sums == nullptr) return;
  const std::lock_guard lock(mutex_);
  kept_.push_back(std::move(sums));
}

void InvertedIndex::add(const SparseRow& x, Overlaps& sums) const {
  sums.dot.resize(sq_norm_.size());
  if (sums.with_l1) sums.l1.resize(sq_norm_.size());
  for (int64_t j = 0; j < x.size; ++j) {
    const int32_t f = x.index[j];
    const double v = x.value[j], abs_v = std::fabs(v);
    postings_.add(f, v, n_rows(), sums.dot.data());
    for (int64_t p = postings_.start[f]; sums.with_l1 && p < postings_.start[f + 1]; ++p) {
      const double w = postings_.value[p];
      sums.l1[postings_.row[p]] += std::fabs(v - w) - abs_v - std::fabs(w);
    }
  }
}

// Sets back to zero what the last query wrote.
void InvertedIndex::clear(Overlaps& sums) const {
  int64_t touched = 0;
  for (const int32_t f : sums.index) touched += postings_.size(f);
  if (touched > n_rows() / 4) {  // a sweep costs less than scattered writes
    std::fill(sums.dot.begin(), sums.dot.end(), 0.0);
    std::fill(sums.l1.begin(), sums.l1.end(), 0.0);
    return;
  }
  for (const int32_t f : sums.index)
    for (int64_t p = postings_.start[f]; p < postings_.start[f + 1]; ++p) {
      sums.dot[postings_.row[p]] = 0.0;
      if (sums.with_l1) sums.l1[postings_.row[p]] = 0.0;
    }
}

}  // namespace metarank
