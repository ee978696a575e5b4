#include "tools/bundles/redact/scratch_directory.h"

#include <fmt/format.h>
#include <stdlib.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::bundles {

ScratchDirectory::ScratchDirectory() {
  std::string name = (std::filesystem::temp_directory_path() / "oomrec-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr)
    throw Error{Exit::bad_input,
                fmt::format("{} cannot be made: {}", printable(name), std::strerror(errno)),
                "Set TMPDIR to a directory with free space."};
  path_ = name;
}

ScratchDirectory::~ScratchDirectory() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace oomrec::tools::bundles
