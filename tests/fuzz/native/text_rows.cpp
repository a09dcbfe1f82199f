// The parser of repository and svmlight text.
#include "../../metarank/_core/text_parse.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace metarank;
  return refusing(data, size, [&](Input& in) {
    const std::uint8_t options = in.byte();
    const std::int64_t d = in.declared() - 1, n_labels = in.declared() - 1;
    const std::size_t rest = size > 5 ? size - 5 : 0;
    const std::unique_ptr<std::uint8_t[]> text(new std::uint8_t[rest]);
    if (rest > 0) std::memcpy(text.get(), data + 5, rest);
    parse_rows(In1<std::uint8_t>(text.get(), {rest}), d, n_labels, (options & 1) != 0, (options & 2) != 0,
               (options & 4) != 0, (options & 8) != 0, 1, 1);
  });
}
