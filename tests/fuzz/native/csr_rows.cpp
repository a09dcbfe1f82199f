// Rows of a sparse matrix at the door: are they canonical, and what are they weighed as texts.
#include "../../metarank/_core/rows.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::int64_t d = in.declared();
    const auto indptr = in.array<std::int32_t>();
    const Csr x = in.csr();
    is_canonical(indptr, x.indices, x.data, d);
    unit_rows(x.indptr, x.data);
    text_rows(x.indptr, x.indices, x.data, in.array<float>());
  });
}
