#include "tools/bundles/opening/other_processes.h"

#include <algorithm>
#include <filesystem>

#include "tools/base/error.h"
#include "tools/bundles/opening/open.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// A name in a file of JSON: a directory beside the bundle, and nothing else.
bool is_plain(const fs::path& name) {
  return !name.empty() && name == name.filename() && name != ".." && name != ".";
}

}  // namespace

void for_each_other_process(const Source& source, const Json& processes,
                            const std::function<void(std::size_t, const Source&)>& visit) {
  if (source.bundle.empty() || !processes.is_array()) return;
  for (std::size_t i = 0; i < std::min(processes.size(), kMostProcesses); ++i) {
    const fs::path name = text_of(processes[i], "bundle").value_or("");
    if (!is_plain(name) || name == source.bundle.filename()) continue;
    try {
      visit(i, open_source(source.bundle.parent_path() / name, source.cache));
    } catch (const Error&) {
      continue;  // gone since, or damaged
    }
  }
}

}  // namespace oomrec::tools::bundles
