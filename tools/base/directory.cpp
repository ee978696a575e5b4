#include "tools/base/directory.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

#include "tools/base/error.h"
#include "tools/base/text.h"

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

TemporaryDirectory::TemporaryDirectory() {
  std::string name = (fs::temp_directory_path() / "oomrec-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw Error{Exit::bad_input,
                fmt::format("{} cannot be made: {}", printable(name), std::strerror(errno)),
                "Set TMPDIR to a directory with free space."};
  path_ = name;
}

TemporaryDirectory::~TemporaryDirectory() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

}  // namespace oomrec::tools
