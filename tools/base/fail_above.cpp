#include "tools/base/fail_above.h"

#include <fmt/format.h>

#include "common/options/options.h"
#include "tools/base/text.h"

namespace oomrec::tools {

void FailAbove::add_to(Arguments& arguments, const std::string& help) {
  arguments.option("--fail-above", "SIZE", text_, help);
}

void FailAbove::read() {
  if (text_.empty() || parse_size(text_, bytes_)) return;
  throw invalid_value("--fail-above", text_,
                      "Use a size such as 64M: suffixes are K M G T (powers of 1024).");
}

void FailAbove::check(std::uint64_t bytes, const std::string& what) const {
  if (text_.empty() || bytes <= bytes_) return;
  throw Error{
      Exit::check_failed,
      fmt::format("{} {}, more than --fail-above {}", size_text(bytes), what, size_text(bytes_)),
      "The page above shows where."};
}

}  // namespace oomrec::tools
