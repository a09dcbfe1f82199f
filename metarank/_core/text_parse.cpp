#include "text_parse.h"

#include <algorithm>
#include <bit>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <string_view>

#include "arrays.h"
#include "parallel.h"

namespace metarank {

namespace {

constexpr std::int64_t kBlockBytes = 1 << 20;
constexpr std::int64_t kMaxId = std::numeric_limits<std::int32_t>::max();

// What the lines mean; a bound below zero is "unknown".
struct Grammar {
  std::int64_t n_features;
  std::int64_t n_labels;
  std::int64_t id_base;   // 1: feature ids start at one
  bool label_field;       // false: every token of a line is an id:value pair
  bool label_first;       // the first token at column 0 is always the label field, even with a colon
  bool blank_rows;        // a blank line is a row without labels and features, not a gap
};

// Entries of consecutive rows.
struct Entries {
  std::vector<std::int32_t> count;  // a row
  std::vector<std::int32_t> id;
  std::vector<float> value;
};

struct Block {
  Entries features, labels;
  std::int64_t lines = 0;
  std::string error;  // about line number `lines`, counted from 1 within the block
};

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A token as it may be shown in a message: short, printable.
std::string quoted(const char* begin, const char* end) {
  constexpr std::ptrdiff_t kShown = 40;
  std::string out = "'";
  for (const char* p = begin; p < std::min(end, begin + kShown); ++p)
    out += std::isprint(static_cast<unsigned char>(*p)) != 0 ? *p : '?';
  return out + (end - begin > kShown ? "...'" : "'");
}

// A whole token as a non-negative integer: -1 if it is none, kMaxId + 1 if it is too large.
std::int64_t parse_id(const char* p, const char* end) {
  if (p < end && *p == '+') ++p;
  if (p == end) return -1;
  std::int64_t id = 0;
  for (; p < end; ++p) {
    if (!is_digit(*p)) return -1;
    id = std::min(id * 10 + (*p - '0'), kMaxId + 1);
  }
  return id;
}

// The float nearest to digits * 10^exponent; false if this short way cannot tell.
//
// Digits below 2^53 and a power of ten within 1e+-22 are one exact product or
// quotient of doubles, rounded once. Rounding that double to float is right
// unless it lies halfway between two floats (the decimal may lie to either side)
// or is subnormal as a float.
inline bool nearest_float(std::uint64_t digits, int exponent, bool negative, float* out) {
  static constexpr double kPowers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                       1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr std::uint64_t kBelowFloat = (std::uint64_t{1} << 29) - 1, kHalfway = std::uint64_t{1} << 28;
  if (digits > (std::uint64_t{1} << 53) || exponent < -22 || exponent > 22) return false;
  double v = static_cast<double>(digits);
  v = exponent < 0 ? v / kPowers[-exponent] : v * kPowers[exponent];
  if ((std::bit_cast<std::uint64_t>(v) & kBelowFloat) == kHalfway) return false;
  if (v != 0 && v < static_cast<double>(std::numeric_limits<float>::min())) return false;
  *out = static_cast<float>(negative ? -v : v);
  return true;
}

// A whole token as the nearest float; false if it is none or not finite.
bool parse_float(const char* begin, const char* end, float* out) {
  const bool negative = begin < end && *begin == '-';
  const char* const first = begin < end && (*begin == '-' || *begin == '+') ? begin + 1 : begin;
  const char* p = first;
  std::uint64_t digits = 0;
  int n_digits = 0, exponent = 0;
  for (; p < end && is_digit(*p); ++p, ++n_digits) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
  if (p < end && *p == '.') {
    const char* const point = ++p;
    for (; p < end && is_digit(*p); ++p, ++n_digits) digits = digits * 10 + static_cast<std::uint64_t>(*p - '0');
    exponent = -static_cast<int>(std::min<std::ptrdiff_t>(p - point, 10000));
  }
  if (n_digits == 0) return false;
  if (p < end && (*p == 'e' || *p == 'E')) {
    ++p;
    const bool minus = p < end && *p == '-';
    if (p < end && (*p == '-' || *p == '+')) ++p;
    if (p == end) return false;
    int e = 0;
    for (; p < end && is_digit(*p); ++p) e = std::min(e * 10 + (*p - '0'), 100000);
    exponent += minus ? -e : e;
  }
  if (p != end) return false;

  if (n_digits <= 19 && nearest_float(digits, exponent, negative, out)) return std::isfinite(*out);
  const auto [stop, status] = std::from_chars(negative ? first - 1 : first, end, *out);
  if (status == std::errc::result_out_of_range) {
    // Too small is zero, too large is an error; the library does not say which it was.
    const char* const leading = std::find_if(first, end, [](char c) { return c >= '1' && c <= '9'; });
    const char* const point = std::find(first, end, '.');
    const char* const mantissa_end = std::find_if(first, end, [](char c) { return c == 'e' || c == 'E'; });
    const auto n_fraction = point < mantissa_end ? mantissa_end - point - 1 : 0;
    const auto n_significant = mantissa_end - leading - (leading < point && point < mantissa_end ? 1 : 0);
    const auto written_exponent = exponent + std::min<std::ptrdiff_t>(n_fraction, 10000);
    if (n_significant - n_fraction + written_exponent > 0) return false;
    *out = 0;
    return true;
  }
  return status == std::errc() && stop == end && std::isfinite(*out);
}

// Sort the row's entries by id and merge equal ids; zeros are dropped.
template <typename Merge>
void close_row(Entries& e, std::size_t start, Merge merge) {
  const std::size_t n = e.id.size() - start;
  std::int32_t* id = e.id.data() + start;
  float* value = e.value.data() + start;
  bool ascending = true, zero = false;
  for (std::size_t j = 0; j < n; ++j) {
    ascending = ascending && (j == 0 || id[j - 1] < id[j]);
    zero = zero || value[j] == 0;
  }
  std::size_t kept = n;
  if (!ascending || zero) {
    std::vector<std::pair<std::int32_t, float>> row(n);
    for (std::size_t j = 0; j < n; ++j) row[j] = {id[j], value[j]};
    std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    kept = 0;
    for (std::size_t j = 0; j < n;) {
      float v = row[j].second;
      std::size_t next = j + 1;
      for (; next < n && row[next].first == row[j].first; ++next) v = merge(v, row[next].second);
      if (v != 0) {
        id[kept] = row[j].first;
        value[kept++] = v;
      }
      j = next;
    }
    e.id.resize(start + kept);
    e.value.resize(start + kept);
  }
  e.count.push_back(static_cast<std::int32_t>(kept));
}

std::string id_error(const char* what, std::int64_t id, std::int64_t bound, const char* begin, const char* end) {
  if (id < 0) return std::string(what) + " id must be a non-negative integer, got " + quoted(begin, end);
  return std::string(what) + " id must be below " + std::to_string(bound) + ", got " + quoted(begin, end);
}

// `id:value`; an empty string, or what is wrong with it.
std::string parse_pair(const char* begin, const char* end, const Grammar& g, Entries& out) {
  const char* colon = static_cast<const char*>(std::memchr(begin, ':', static_cast<std::size_t>(end - begin)));
  if (colon == nullptr) return "expected id:value, got " + quoted(begin, end);
  if (std::string_view(begin, static_cast<std::size_t>(colon - begin)) == "qid") return {};
  const std::int64_t written = parse_id(begin, colon), id = written - g.id_base;
  const std::int64_t bound = g.n_features < 0 ? kMaxId : g.n_features;
  const char* what = g.label_field ? "feature" : "label";
  if (written >= 0 && id < 0) return "feature ids start at 1, got " + quoted(begin, end);
  if (written < 0 || id >= bound) return id_error(what, written, bound + g.id_base, begin, end);
  float value = 0;
  if (!parse_float(colon + 1, end, &value)) return "value must be a finite 32-bit number, got " + quoted(begin, end);
  out.id.push_back(static_cast<std::int32_t>(id));
  out.value.push_back(value);
  return {};
}

// The common form of a pair, `12:-0.345`, in one pass; p moves behind it. Anything
// else, right or wrong, is left to parse_pair.
inline bool parse_plain_pair(const char*& p, const char* end, std::int64_t id_base, std::int64_t bound, Entries& out) {
  constexpr int kMaxIdDigits = 9, kMaxDigits = 15;
  const char* q = p;
  std::uint64_t written = 0;
  for (; q < end && is_digit(*q); ++q) written = written * 10 + static_cast<std::uint64_t>(*q - '0');
  if (q == p || q - p > kMaxIdDigits || q == end || *q != ':') return false;
  const std::int64_t id = static_cast<std::int64_t>(written) - id_base;
  if (id < 0 || id >= bound) return false;
  ++q;
  const bool negative = q < end && *q == '-';
  if (negative) ++q;
  const char* const first = q;
  std::uint64_t digits = 0;
  for (; q < end && is_digit(*q); ++q) digits = digits * 10 + static_cast<std::uint64_t>(*q - '0');
  std::ptrdiff_t n_digits = q - first, n_fraction = 0;
  if (q < end && *q == '.') {
    const char* const point = ++q;
    for (; q < end && is_digit(*q); ++q) digits = digits * 10 + static_cast<std::uint64_t>(*q - '0');
    n_fraction = q - point;
    n_digits += n_fraction;
  }
  if (n_digits == 0 || n_digits > kMaxDigits || (q < end && !is_blank(*q))) return false;
  float value = 0;
  if (!nearest_float(digits, -static_cast<int>(n_fraction), negative, &value)) return false;
  out.id.push_back(static_cast<std::int32_t>(id));
  out.value.push_back(value);
  p = q;
  return true;
}

// `label,label,...` or `label:grade,label:grade,...`.
std::string parse_labels(const char* begin, const char* end, const Grammar& g, Entries& out) {
  for (const char* p = begin; p <= end;) {
    const char* stop = std::find(p, end, ',');
    const char* colon = std::find(p, stop, ':');
    const std::int64_t id = parse_id(p, colon), bound = g.n_labels < 0 ? kMaxId : g.n_labels;
    if (id < 0 || id >= bound) return id_error("label", id, bound, p, stop);
    float grade = 1;
    if (colon != stop && (!parse_float(colon + 1, stop, &grade) || grade < 0))
      return "grade must be a finite, non-negative number, got " + quoted(p, stop);
    out.id.push_back(static_cast<std::int32_t>(id));
    out.value.push_back(grade);
    p = stop + 1;
  }
  return {};
}

std::string parse_line(const char* p, const char* end, const Grammar& g, Block& block) {
  const char* const comment = static_cast<const char*>(std::memchr(p, '#', static_cast<std::size_t>(end - p)));
  const bool labels_may_follow = g.label_field && p < end && !is_blank(*p);
  if (comment != nullptr) end = comment;
  while (end > p && is_blank(end[-1])) --end;
  const char* token = p;
  while (token < end && is_blank(*token)) ++token;
  if (token == end && (comment != nullptr || !g.blank_rows)) return {};

  const std::size_t features_start = block.features.id.size(), labels_start = block.labels.id.size();
  const std::int64_t bound = g.n_features < 0 ? kMaxId : g.n_features;
  bool first = labels_may_follow;
  while (token < end) {
    if (!first && parse_plain_pair(token, end, g.id_base, bound, block.features)) {
      while (token < end && is_blank(*token)) ++token;
      continue;
    }
    const char* stop = token;
    bool colon = false;
    for (; stop < end && !is_blank(*stop); ++stop) colon = colon || *stop == ':';
    const bool is_label = first && (g.label_first || !colon);
    std::string error =
        is_label ? parse_labels(token, stop, g, block.labels) : parse_pair(token, stop, g, block.features);
    if (!error.empty()) return error;
    first = false;
    for (token = stop; token < end && is_blank(*token);) ++token;
  }
  close_row(block.features, features_start, [](float a, float b) { return a + b; });
  close_row(block.labels, labels_start, [](float a, float b) { return std::max(a, b); });
  return {};
}

Block parse_block(const char* data, std::int64_t size, std::int64_t begin, std::int64_t end, const Grammar& g) {
  Block block;
  const char* p = data + begin;
  const char* const stop = data + end;
  const char* const last = data + size;
  if (begin > 0) {  // the line that started in an earlier block is not ours
    p = static_cast<const char*>(std::memchr(p - 1, '\n', static_cast<std::size_t>(last - p + 1)));
    if (p == nullptr) return block;
    ++p;
  }
  const auto guess = static_cast<std::size_t>(std::max<std::int64_t>(0, stop - p)) / 8;
  block.features.id.reserve(guess);
  block.features.value.reserve(guess);
  while (p < stop) {
    const char* line_end = static_cast<const char*>(std::memchr(p, '\n', static_cast<std::size_t>(last - p)));
    if (line_end == nullptr) line_end = last;
    ++block.lines;
    block.error = parse_line(p, line_end, g, block);
    if (!block.error.empty()) break;
    p = line_end + 1;
  }
  return block;
}

// Entries of all blocks, joined in order.
struct Joined {
  std::vector<std::int64_t> indptr;
  std::vector<std::int32_t> id;
  std::vector<float> value;
};

Joined join(std::vector<Block>& blocks, Entries Block::* part) {
  Joined out;
  std::size_t n_rows = 0, n_entries = 0;
  for (Block& b : blocks) n_rows += (b.*part).count.size(), n_entries += (b.*part).id.size();
  out.indptr.reserve(n_rows + 1);
  out.indptr.push_back(0);
  out.id.reserve(n_entries);
  out.value.reserve(n_entries);
  for (Block& b : blocks) {
    Entries& e = b.*part;
    for (const std::int32_t c : e.count) out.indptr.push_back(out.indptr.back() + c);
    out.id.insert(out.id.end(), e.id.begin(), e.id.end());
    out.value.insert(out.value.end(), e.value.begin(), e.value.end());
    e = Entries();
  }
  return out;
}

}  // namespace

ParsedRows parse_rows(
    In1<std::uint8_t> text, std::int64_t n_features, std::int64_t n_labels, bool zero_based, bool label_field,
    bool label_first, bool blank_rows, std::int64_t first_line, int n_threads) {
  const Grammar grammar{n_features, n_labels, zero_based ? 0 : 1, label_field, label_first, blank_rows};
  const auto size = static_cast<std::int64_t>(text.shape(0));
  const char* data = reinterpret_cast<const char*>(text.data());
  std::vector<Block> blocks(static_cast<std::size_t>((size + kBlockBytes - 1) / kBlockBytes));
  Joined features, labels;
  parallel_for(static_cast<std::int64_t>(blocks.size()), n_threads, 1,
               [&](std::int64_t begin, std::int64_t end, int) {
                 for (std::int64_t b = begin; b < end; ++b)
                   blocks[static_cast<std::size_t>(b)] = parse_block(
                       data, size, b * kBlockBytes, std::min(size, (b + 1) * kBlockBytes), grammar);
               });
  std::int64_t line = first_line - 1;
  for (const Block& b : blocks) {
    line += b.lines;
    require(b.error.empty(), "line " + std::to_string(line) + ": " + b.error);
  }
  features = join(blocks, &Block::features);
  labels = join(blocks, &Block::labels);
  return std::make_tuple(to_array(std::move(features.indptr)), to_array(std::move(features.id)),
                        to_array(std::move(features.value)), to_array(std::move(labels.indptr)),
                        to_array(std::move(labels.id)), to_array(std::move(labels.value)));
}

namespace {

void check_csr(const In1<std::int64_t>& indptr, std::size_t n_ids, std::size_t n_values, const char* name) {
  const std::string what = std::string(name) + " is not a CSR matrix";
  require(indptr.shape(0) >= 1 && indptr(0) == 0, what);
  for (std::size_t i = 1; i < indptr.shape(0); ++i) require(indptr(i - 1) <= indptr(i), what);
  require(static_cast<std::size_t>(indptr(indptr.shape(0) - 1)) == n_ids && n_ids == n_values, what);
}

template <typename T>
void append(std::vector<std::uint8_t>& out, T value) {
  char buffer[32];  // the shortest decimal that reads back as the same value
  const auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.insert(out.end(), buffer, end);
}

}  // namespace

Array1<std::uint8_t> format_rows(In1<std::int64_t> indptr, In1<std::int32_t> ids, In1<float> values,
                                 In1<std::int64_t> label_indptr, In1<std::int32_t> label_ids, In1<float> grades,
                                 bool graded) {
  check_csr(indptr, ids.shape(0), values.shape(0), "X");
  check_csr(label_indptr, label_ids.shape(0), grades.shape(0), "Y");
  require(indptr.shape(0) == label_indptr.shape(0), "X and Y must have the same number of rows");
  std::vector<std::uint8_t> out;
  for (std::size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    for (auto j = static_cast<std::size_t>(label_indptr(i)); j < static_cast<std::size_t>(label_indptr(i + 1)); ++j) {
      if (j > static_cast<std::size_t>(label_indptr(i))) out.push_back(',');
      append(out, label_ids(j));
      if (graded) {
        out.push_back(':');
        append(out, grades(j));
      }
    }
    if (indptr(i) == indptr(i + 1) && label_indptr(i) == label_indptr(i + 1)) out.push_back(' ');
    for (auto j = static_cast<std::size_t>(indptr(i)); j < static_cast<std::size_t>(indptr(i + 1)); ++j) {
      out.push_back(' ');
      append(out, ids(j));
      out.push_back(':');
      append(out, values(j));
    }
    out.push_back('\n');
  }
  return to_array(std::move(out));
}

}  // namespace metarank
