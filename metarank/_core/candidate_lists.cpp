#include "candidate_lists.h"

#include <algorithm>
#include <iterator>

#include "arrays.h"

namespace metarank {

std::tuple<Array1<std::int64_t>, Array1<std::int32_t>> unite_lists(
    const std::vector<In1<std::int64_t>>& indptr, const std::vector<In1<std::int32_t>>& labels) {
  require(!indptr.empty() && indptr.size() == labels.size(), "there must be at least one part, each with its labels");
  std::size_t most = 0;
  for (std::size_t k = 0; k < indptr.size(); ++k) {
    require_indptr(indptr[k], static_cast<std::int64_t>(labels[k].shape(0)), "indptr");
    require(indptr[k].shape(0) == indptr[0].shape(0), "parts must have the same rows");
    most += labels[k].shape(0);
  }
  const std::size_t n = indptr[0].shape(0) - 1;
  std::vector<std::int64_t> start(n + 1, 0);
  std::vector<std::int32_t> united;
  united.reserve(most);
  std::vector<std::int32_t> row, merged;
  for (std::size_t i = 0; i < n; ++i) {
    row.clear();
    for (std::size_t k = 0; k < indptr.size(); ++k) {
      const std::int32_t* list = labels[k].data();
      merged.clear();
      std::set_union(row.begin(), row.end(), list + indptr[k].data()[i], list + indptr[k].data()[i + 1],
                     std::back_inserter(merged));
      row.swap(merged);
    }
    united.insert(united.end(), row.begin(), row.end());
    start[i + 1] = static_cast<std::int64_t>(united.size());
  }
  return std::make_tuple(to_array(std::move(start)), to_array(std::move(united)));
}

}  // namespace metarank
