// Text of the extreme classification repository (`labels id:value id:value ...`,
// one line a row), read from a buffer and written to one.
//
// The buffer is cut into blocks of fixed size; a block owns the lines that start
// in it. Blocks are parsed side by side and joined in order, so the result and the
// first error do not depend on the number of threads.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// (indptr, ids, values) of the features, and of the labels.
using ParsedRows =
    std::tuple<Array1<int64_t>, Array1<int32_t>, Array1<float>, Array1<int64_t>, Array1<int32_t>, Array1<float>>;

ParsedRows parse_rows(In1<uint8_t> text, int64_t n_features, int64_t n_labels, bool zero_based, bool label_field,
                      bool label_first, bool blank_rows, int64_t first_line, int n_threads);

Array1<uint8_t> format_rows(In1<int64_t> indptr, In1<int32_t> ids, In1<float> values, In1<int64_t> label_indptr,
                            In1<int32_t> label_ids, In1<float> grades, bool graded);

}  // namespace metarank
