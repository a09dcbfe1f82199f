// Columns of described pairs as the table that rankers see.
#include "../../metarank/_core/candidate_lists.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::vector<std::int64_t> own = {in.byte() % 4, in.byte() % 4};
    const bool standardize = in.byte() % 2 == 1;
    const auto indptr = in.array<std::int64_t>();
    const std::vector<In1<float>> columns = {in.array<float>(), in.array<float>(), in.array<float>()};
    feature_table(columns, indptr, own, standardize, 1);
  });
}
