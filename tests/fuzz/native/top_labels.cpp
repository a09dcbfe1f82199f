// The best labels of scores, whatever a model's scores are.
#include "../../metarank/_core/metrics.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::int64_t k = in.byte();
    const Lists lists = in.lists();
    top_k_listed(lists.indptr, lists.labels, in.array<float>(), k, 1);
    top_k_dense(in.matrix<double>(in.byte()), k, 1);
  });
}
