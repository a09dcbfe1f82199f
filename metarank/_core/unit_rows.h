// Rows of a CSR matrix at the door: are they canonical; scaled to unit length.
#pragma once

#include <cstdint>
#include <tuple>

#include "arrays.h"

namespace metarank {

// The values of each row divided by its length, summed in double in the order stored; zero rows stay.
Array1<float> unit_rows(const In1<std::int64_t>& indptr, const In1<float>& data);

// Whether columns ascend within [0, n_features) and values are finite and not zero.
bool is_canonical(const In1<std::int32_t>& indptr, const In1<std::int32_t>& indices, const In1<float>& data,
                  std::int64_t n_features);

// Rows as texts: values v weighted as (1 + ln v) * weight of the column where there are weights (0 where v is not
// positive), then divided by their length. Sums in double in the order stored; zero rows stay.
Array1<float> text_rows(const In1<std::int64_t>& indptr, const In1<std::int32_t>& indices, const In1<float>& data,
                        const In1<float>& weights);

}  // namespace metarank
