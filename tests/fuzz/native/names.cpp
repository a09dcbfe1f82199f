// The labels' texts: evidence of pairs, and the labels whose names a text is like.
#include "../../metarank/_core/names.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::int64_t d = in.declared(), k = 1 + in.byte() % 8;
    const auto names = in.csr(d), rows = in.csr();
    const LabelText text(names);
    text.shortlist(rows, k, 1);
    const auto lists = in.lists();
    text.evidence(rows, lists.indptr, lists.labels, 1);
  });
}
