// The labels' texts: evidence of pairs, and the labels whose names a text is like.
#include "../../metarank/_core/names.cpp"
#include "input.h"
#include "../../metarank/_core/pairs.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::int64_t d = in.declared(), k = 1 + in.byte() % 8;
    const auto names = in.csr(), rows = in.csr();
    const LabelText text(d, checked_csr("label_text", names.indptr, names.indices, names.data, d));
    const auto x = checked_csr("X", rows.indptr, rows.indices, rows.data, d);
    shortlist(text, x, k, 1);
    const auto lists = in.lists();
    require_pairs(lists.indptr, lists.labels, x.n_rows, text.n_labels());
    evidence(text, x, lists.indptr.data(), lists.labels.data(), 1);
  });
}
