// Votes of training rows: their labels, their worth and the labels' names, and what pairs and shortlists get.
#include "../../metarank/_core/votes.h"
#include "input.h"

#include <optional>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::int64_t n_words = in.declared();
    const int k = 1 + in.byte() % 8;
    const auto row_indptr = in.array<std::int64_t>();
    const auto row_labels = in.array<std::int32_t>();
    const auto popular = in.array<std::int32_t>();
    const auto frequency = in.array<double>(), worth = in.array<double>();
    const Csr names = in.csr(n_words);
    const auto text = names.indptr.shape(0) > 0 ? std::optional(names) : std::nullopt;
    const Votes votes(row_indptr, row_labels, popular, frequency,
                      worth.shape(0) > 0 ? std::optional(worth) : std::nullopt, text);
    const std::size_t width = in.byte() % 8u;
    const auto rows = in.matrix<std::int32_t>(width);
    const auto weights = in.matrix<float>(width);
    const Lists lists = in.lists();
    votes.shortlist(rows, weights, 1e-6, k, 1);
    votes.columns(rows, weights, lists.indptr, lists.labels, {k, 1}, 1);
    votes.kin_by_name(rows, weights, lists.indptr, lists.labels, 1);
  });
}
