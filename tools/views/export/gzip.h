// gzip compression, which pprof's profiles require.
#pragma once

#include <string>
#include <string_view>

namespace oomrec::tools::views {

std::string gzipped(std::string_view bytes);

}  // namespace oomrec::tools::views
