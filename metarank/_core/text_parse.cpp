#include "text_parse.h"

#include <algorithm>
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

constexpr int64_t kBlockBytes = 1 << 20;
constexpr int64_t kMaxId = std::numeric_limits<int32_t>::max();

// What the lines mean; a bound below zero is "unknown".
struct Grammar {
  int64_t n_features;
  int64_t n_labels;
  int64_t id_base;   // 1: feature ids start at one
  bool label_field;  // false: every token of a line is an id:value pair
  bool label_first;  // the first token at column 0 is always the label field, even with a colon
  bool blank_rows;   // a blank line is a row without labels and features, not a gap
};

// Entries of consecutive rows.
struct Entries {
  std::vector<int32_t> count;  // a row
  std::vector<int32_t> id;
  std::vector<float> value;
};

struct Block {
  Entries features, labels;
  int64_t lines = 0;
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
int64_t parse_id(const char* p, const char* end) {
  if (p < end && *p == '+') ++p;
  if (p == end) return -1;
  int64_t id = 0;
  for (; p < end; ++p) {
    if (!is_digit(*p)) return -1;
    id = std::min(id * 10 + (*p - '0'), kMaxId + 1);
  }
  return id;
}

// A whole token as the nearest float; false if it is none or not finite.
bool parse_float(const char* begin, const char* end, float* out) {
  const char* const first = end - begin > 1 && *begin == '+' && begin[1] != '-' ? begin + 1 : begin;
  const auto [stop, status] = std::from_chars(first, end, *out);
  if (status != std::errc::result_out_of_range) return status == std::errc() && stop == end && std::isfinite(*out);
  // Too small is zero, too large is an error; the library does not say which it was.
  *out = 0;
  double wide = 0.0;
  if (std::from_chars(first, end, wide).ec == std::errc()) return stop == end && std::fabs(wide) < 1.0;
  const std::string_view token(first, static_cast<size_t>(stop - first));
  const size_t exponent = token.find_first_of("eE");
  const bool tiny = exponent == std::string_view::npos ? token.find_first_of("123456789") > token.find('.')
                                                       : token[exponent + 1] == '-';
  return stop == end && tiny;
}

// Sort the row's entries by id and merge equal ids; zeros are dropped.
template <typename Merge>
void close_row(Entries& e, size_t start, Merge merge) {
  const size_t n = e.id.size() - start;
  int32_t* id = e.id.data() + start;
  float* value = e.value.data() + start;
  bool ascending = true, zero = false;
  for (size_t j = 0; j < n; ++j) {
    ascending = ascending && (j == 0 || id[j - 1] < id[j]);
    zero = zero || value[j] == 0;
  }
  size_t kept = n;
  if (!ascending || zero) {
    std::vector<std::pair<int32_t, float>> row(n);
    for (size_t j = 0; j < n; ++j) row[j] = {id[j], value[j]};
    std::stable_sort(row.begin(), row.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    kept = 0;
    for (size_t j = 0; j < n;) {
      float v = row[j].second;
      size_t next = j + 1;
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
  e.count.push_back(static_cast<int32_t>(kept));
}

std::string id_error(const char* what, int64_t id, int64_t bound, const char* begin, const char* end) {
  if (id < 0) return std::string(what) + " id must be a non-negative integer, got " + quoted(begin, end);
  return std::string(what) + " id must be below " + std::to_string(bound) + ", got " + quoted(begin, end);
}

// `id:value`; an empty string, or what is wrong with it.
std::string parse_pair(const char* begin, const char* end, const Grammar& g, Entries& out) {
  const char* colon = static_cast<const char*>(std::memchr(begin, ':', static_cast<size_t>(end - begin)));
  if (colon == nullptr) return "expected id:value, got " + quoted(begin, end);
  if (std::string_view(begin, static_cast<size_t>(colon - begin)) == "qid") return {};
  const int64_t written = parse_id(begin, colon), id = written - g.id_base;
  const int64_t bound = g.n_features < 0 ? kMaxId : g.n_features;
  const char* what = g.label_field ? "feature" : "label";
  if (written >= 0 && id < 0) return "feature ids start at 1, got " + quoted(begin, end);
  if (written < 0 || id >= bound) return id_error(what, written, bound + g.id_base, begin, end);
  float value = 0;
  if (!parse_float(colon + 1, end, &value)) return "value must be a finite 32-bit number, got " + quoted(begin, end);
  out.id.push_back(static_cast<int32_t>(id));
  out.value.push_back(value);
  return {};
}

// `label,label,...` or `label:grade,label:grade,...`.
std::string parse_labels(const char* begin, const char* end, const Grammar& g, Entries& out) {
  for (const char* p = begin; p <= end;) {
    const char* stop = std::find(p, end, ',');
    const char* colon = std::find(p, stop, ':');
    const int64_t id = parse_id(p, colon), bound = g.n_labels < 0 ? kMaxId : g.n_labels;
    if (id < 0 || id >= bound) return id_error("label", id, bound, p, stop);
    float grade = 1;
    if (colon != stop && (!parse_float(colon + 1, stop, &grade) || grade < 0))
      return "grade must be a finite, non-negative number, got " + quoted(p, stop);
    out.id.push_back(static_cast<int32_t>(id));
    out.value.push_back(grade);
    p = stop + 1;
  }
  return {};
}

std::string parse_line(const char* p, const char* end, const Grammar& g, Block& block) {
  const char* const comment = static_cast<const char*>(std::memchr(p, '#', static_cast<size_t>(end - p)));
  const bool labels_may_follow = g.label_field && p < end && !is_blank(*p);
  if (comment != nullptr) end = comment;
  while (end > p && is_blank(end[-1])) --end;
  const char* token = p;
  while (token < end && is_blank(*token)) ++token;
  if (token == end && (comment != nullptr || !g.blank_rows)) return {};

  const size_t features_start = block.features.id.size(), labels_start = block.labels.id.size();
  bool first = labels_may_follow;
  while (token < end) {
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

Block parse_block(const char* data, int64_t size, int64_t begin, int64_t end, const Grammar& g) {
  Block block;
  const char* p = data + begin;
  const char* const stop = data + end;
  const char* const last = data + size;
  if (begin > 0) {  // the line that started in an earlier block is not ours
    p = static_cast<const char*>(std::memchr(p - 1, '\n', static_cast<size_t>(last - p + 1)));
    if (p == nullptr) return block;
    ++p;
  }
  const auto guess = static_cast<size_t>(std::max<int64_t>(0, stop - p)) / 8;
  block.features.id.reserve(guess);
  block.features.value.reserve(guess);
  while (p < stop) {
    const char* line_end = static_cast<const char*>(std::memchr(p, '\n', static_cast<size_t>(last - p)));
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
  std::vector<int64_t> indptr;
  std::vector<int32_t> id;
  std::vector<float> value;
};

Joined join(std::vector<Block>& blocks, Entries Block::* part) {
  Joined out;
  size_t n_rows = 0, n_entries = 0;
  for (Block& b : blocks) n_rows += (b.*part).count.size(), n_entries += (b.*part).id.size();
  out.indptr.reserve(n_rows + 1);
  out.indptr.push_back(0);
  out.id.reserve(n_entries);
  out.value.reserve(n_entries);
  for (Block& b : blocks) {
    Entries& e = b.*part;
    for (const int32_t c : e.count) out.indptr.push_back(out.indptr.back() + c);
    out.id.insert(out.id.end(), e.id.begin(), e.id.end());
    out.value.insert(out.value.end(), e.value.begin(), e.value.end());
    e = Entries();
  }
  return out;
}

}  // namespace

ParsedRows parse_rows(In1<uint8_t> text, int64_t n_features, int64_t n_labels, bool zero_based, bool label_field,
                      bool label_first, bool blank_rows, int64_t first_line, int n_threads) {
  const Grammar grammar{n_features, n_labels, zero_based ? 0 : 1, label_field, label_first, blank_rows};
  const auto size = static_cast<int64_t>(text.shape(0));
  const char* data = reinterpret_cast<const char*>(text.data());
  std::vector<Block> blocks(static_cast<size_t>((size + kBlockBytes - 1) / kBlockBytes));
  Joined features, labels;
  parallel_for(static_cast<int64_t>(blocks.size()), n_threads, 1, [&](int64_t begin, int64_t end, int) {
    for (int64_t b = begin; b < end; ++b)
      blocks[b] = parse_block(data, size, b * kBlockBytes, std::min(size, (b + 1) * kBlockBytes), grammar);
  });
  int64_t line = first_line - 1;
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

void check_csr(const In1<int64_t>& indptr, size_t n_ids, size_t n_values, const char* name) {
  const std::string what = std::string(name) + " is not a CSR matrix";
  require(indptr.shape(0) >= 1 && indptr(0) == 0, what);
  for (size_t i = 1; i < indptr.shape(0); ++i) require(indptr(i - 1) <= indptr(i), what);
  require(static_cast<size_t>(indptr(indptr.shape(0) - 1)) == n_ids && n_ids == n_values, what);
}

template <typename T>
void append(std::vector<uint8_t>& out, T value) {
  char buffer[32];  // the shortest decimal that reads back as the same value
  const auto [end, status] = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.insert(out.end(), buffer, end);
}

}  // namespace

Array1<uint8_t> format_rows(In1<int64_t> indptr, In1<int32_t> ids, In1<float> values, In1<int64_t> label_indptr,
                            In1<int32_t> label_ids, In1<float> grades, bool graded) {
  check_csr(indptr, ids.shape(0), values.shape(0), "X");
  check_csr(label_indptr, label_ids.shape(0), grades.shape(0), "Y");
  require(indptr.shape(0) == label_indptr.shape(0), "X and Y must have the same number of rows");
  std::vector<uint8_t> out;
  for (size_t i = 0; i + 1 < indptr.shape(0); ++i) {
    for (auto j = static_cast<size_t>(label_indptr(i)); j < static_cast<size_t>(label_indptr(i + 1)); ++j) {
      if (j > static_cast<size_t>(label_indptr(i))) out.push_back(',');
      append(out, label_ids(j));
      if (graded) {
        out.push_back(':');
        append(out, grades(j));
      }
    }
    if (indptr(i) == indptr(i + 1) && label_indptr(i) == label_indptr(i + 1)) out.push_back(' ');
    for (auto j = static_cast<size_t>(indptr(i)); j < static_cast<size_t>(indptr(i + 1)); ++j) {
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
