// Dense rows in 8 bits a number, which tell from a quarter of the memory what rows may have the greatest products with a
// query; the exact products are then those of a few.
//
// A row is y = scale c + e for whole numbers c in [-127, 127], a query likewise: the product of their whole numbers misses
// x . y by |x| |e_y| + |e_x| |y| at most. Bounds allow for the rounding of sums in single precision, too.
#pragma once

#include <cstdint>
#include <vector>

#include "arrays.h"

namespace metarank {

class CoarseRows {
 public:
  // Of X the rows `numbers`; `bias` has an entry for each.
  CoarseRows(In2<float> X, std::vector<int32_t> numbers, std::vector<float> bias);

  // The numbers of all rows y that may be among the k of the greatest x . y + bias, in single precision, of one x.
  std::vector<int32_t> foremost(const In2<float>& row, int64_t k) const;

 private:
  int64_t width_;
  float unit_;  // no sum of products, nor of squares of differences, is off by so much of its terms' magnitudes
  std::vector<int32_t> numbers_;
  std::vector<float> bias_, scale_, length_, error_;
  std::vector<int8_t> values_;
};

}  // namespace metarank
