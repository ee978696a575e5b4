#include "tools/base/directory.h"

#include <system_error>

namespace oomrec::tools {

namespace fs = std::filesystem;

std::vector<fs::directory_entry> entries_of(const fs::path& directory) {
  std::vector<fs::directory_entry> entries;
  std::error_code error;
  for (fs::directory_iterator at{directory, error}, end; !error && at != end; at.increment(error))
    entries.push_back(*at);
  return entries;
}

fs::path absolute_path(const fs::path& path) {
  std::error_code error;
  const fs::path absolute = fs::absolute(path, error);
  return error ? path : absolute;
}

bool is_hidden(const fs::path& path) { return path.filename().native().starts_with('.'); }

}  // namespace oomrec::tools
