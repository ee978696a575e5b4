#include "tools/base/log.h"

#include <fmt/format.h>

#include <cstdio>

namespace oomrec::tools {

void remark(const std::string& text) { fmt::print(stderr, "oomrec: {}\n", text); }

}  // namespace oomrec::tools
