// Sparse means of the labels: distances of pairs, and the probabilities of tail classifiers.
#include "../../metarank/_core/label_mean_index.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [](Input& in) {
    const std::int64_t d = in.declared();
    const double gamma = in.byte(), max_sq_norm = in.byte();
    const Csr mean = in.csr(d);
    const auto sq_norm = in.array<double>();
    const auto known = in.array<std::uint8_t>();
    const LabelMeanIndex means(mean, sq_norm, known, max_sq_norm);
    const Csr x = in.csr();
    const Lists lists = in.lists();
    // Often enough that the postings are made, which one short call does not.
    for (int times = 0; times < 4; ++times) distances(means, x, lists.indptr, lists.labels, 1);
    for (const bool unit_means : {false, true})
      tail_log_probability(means, x, lists.indptr, lists.labels, gamma, unit_means, 1);
  });
}
