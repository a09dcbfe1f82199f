// Candidate lists of the same rows: their union, what their sources say of it, and its foremost pairs.
#pragma once

#include <cstdint>
#include <tuple>
#include <vector>

#include "arrays.h"

namespace metarank {

// (indptr, labels): for each row the labels of any part, once, ascending as those of the parts are.
std::tuple<Array1<std::int64_t>, Array1<std::int32_t>> unite_lists(
    const std::vector<In1<std::int64_t>>& indptr, const std::vector<In1<std::int32_t>>& labels);

// (m, 2 S + 1): for each of m pairs, its score in each of S proposals and its place there, from 0; last, its `own`
// value. A pair that a source does not propose has the least score of the source in the row, or 0, and the place
// `absent`.
Array2<float> proposal_columns(const std::vector<In1<std::int64_t>>& part_indptr,
                               const std::vector<In1<std::int32_t>>& part_labels,
                               const std::vector<In1<float>>& part_scores, In1<std::int64_t> indptr,
                               In1<std::int32_t> labels, In1<float> own, float absent, int n_threads);

// (m): 1 for the k best pairs of each list, of equal scores the first.
Array1<std::uint8_t> foremost(In1<double> scores, In1<std::int64_t> indptr, std::int64_t k);

// (m): the evidence of the pairs that are `ahead`, in their order, and of each other pair its rough score, moved so
// that the best of them is `gap` below the least evidence of the list. A list without a pair ahead keeps rough scores.
Array1<double> with_pairs_behind(In1<double> evidence, In1<double> rough, In1<std::uint8_t> ahead,
                                 In1<std::int64_t> indptr, double gap);

}  // namespace metarank
