// Parts of "request" in metadata.json: the failed request.
#pragma once

#include "common/facts/describe.h"

namespace oomrec::facts {

// Further requests that failed because the reported one had.
struct Aftershocks {
  std::uint64_t count = 0;
  std::uint64_t last_after_ms = 0;  // between the request and the last of them
};

template <>
struct Section<Aftershocks> {
  static constexpr std::string_view key = "aftershocks";
  static constexpr std::string_view meaning =
      "[further failures](deaths.md#one-bundle-for-one-failure) that the request brought about";
  static constexpr JsonLayout layout = JsonLayout::one_line;

  static void describe(auto& v, auto& aftershocks) {
    v.field("count", aftershocks.count, "counted when the outcome is completed, as `repeats` are");
    v.field("last_after_ms", known_if(aftershocks.count != 0, aftershocks.last_after_ms),
            "between the request and the last of them");
  }
};

}  // namespace oomrec::facts
