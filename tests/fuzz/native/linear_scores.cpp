// Scores of pairs by the weights of their labels, of dense and of sparse rows.
#include "../../metarank/_core/linear_scores.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::size_t d = in.byte(), n_labels = in.byte();
    const auto W = in.matrix<float>(n_labels);
    const auto bias = in.array<float>();
    const Lists lists = in.lists();
    if (in.byte() % 2 == 0) {
      linear_scores_dense(in.matrix<float>(d), W, bias, lists.indptr, lists.labels, 1);
      return;
    }
    linear_scores_sparse(in.csr(static_cast<std::int64_t>(d)), W, bias, lists.indptr, lists.labels, 1);
  });
}
