// A two-sided linear model of vectors: rows e and labels l are compared by the cosine of e W and l + o, where the
// matrix W is shared and the offset o is the label's own. Both start from nothing learned, W = I and o = 0, so that
// labels without rows are scored from the first step.
//
// Trained by softmax over a row's relevant labels, its hardest ones as the vectors stand, and some drawn anew each time,
// whose scores are corrected by how likely they are drawn (Bengio and Senecal, 2008). Steps are Adam's for W and the
// scale, Adagrad's of one rate a label for the offsets. Rows of a batch, then labels, then rows of W are each computed by
// one worker in a fixed order: the same bytes for any number of threads.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

struct TwoSidedOptions {
  int64_t epochs, batch, n_drawn;
  float matrix_rate, offset_rate;  // of the first step; they fall to 0 along a line
  float scale;                     // of cosines in the softmax, before the first step
  uint64_t seed;
};

// W (d, d) and the labels' vectors l + o at unit length (L, d). `rows` (n, d) and `labels` (L, d) are of unit length;
// `indptr` and `relevant` are each row's labels and `hard` (n, h) those that they must beat, or -1, both ascending; `cumulated` (L)
// are the shares of labels in the draws, added up: those of share 0 keep an offset of 0.
std::tuple<Array2<float>, Array2<float>> train_two_sided(In2<float> rows, In2<float> labels, Indptr indptr, Ids relevant,
                                                         In2<int32_t> hard, In1<double> cumulated,
                                                         const TwoSidedOptions& options, int n_threads);

}  // namespace metarank
