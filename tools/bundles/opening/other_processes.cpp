#include "tools/bundles/opening/other_processes.h"

#include <algorithm>
#include <filesystem>

#include "tools/base/error.h"
#include "tools/bundles/opening/open.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// Accepts only a plain directory name: the JSON it is from may be forged.
bool is_plain_name(const fs::path& name) {
  return !name.empty() && name == name.filename() && name != ".." && name != ".";
}

}  // namespace

void for_each_other_process(const Source& source, const Json& processes,
                            const std::function<void(std::size_t, const Source&)>& visit) {
  if (source.bundle.empty() || !processes.is_array()) return;
  for (std::size_t i = 0; i < std::min(processes.size(), kMostProcesses); ++i) {
    const fs::path name = text_of(processes[i], "bundle").value_or("");
    if (!is_plain_name(name) || name == source.bundle.filename()) continue;
    try {
      visit(i, open_source(source.bundle.parent_path() / name, source.cache));
    } catch (const Error&) {
      continue;  // deleted meanwhile, or damaged
    }
  }
}

}  // namespace oomrec::tools::bundles
