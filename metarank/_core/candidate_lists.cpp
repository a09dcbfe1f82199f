// The union of candidate lists of the same rows.
#include <algorithm>
#include <iterator>

#include "bindings.h"

namespace metarank {

namespace {

// (indptr, labels): for each row the labels of any part, once, ascending as those of the parts are.
nb::tuple unite_lists(const std::vector<In1<std::int64_t>>& indptr, const std::vector<In1<std::int32_t>>& labels) {
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
  {
    nb::gil_scoped_release release;
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
  }
  return nb::make_tuple(to_numpy(std::move(start)), to_numpy(std::move(united)));
}

}  // namespace

void bind_candidate_lists(nb::module_& m) {
  m.def("unite_lists", &unite_lists, nb::arg("indptr").noconvert(), nb::arg("labels").noconvert());
}

}  // namespace metarank
