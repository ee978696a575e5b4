#include "tools/recording/reading/session_file.h"

#include <cstring>
#include <string>

#include "common/session/layout.h"
#include "tools/base/foreign_file.h"

namespace oomrec::tools::recording {

bool is_session_file(const std::filesystem::path& file) {
  std::uint64_t magic = 0;
  const std::string first = first_bytes_of(ForeignPath::named(file), sizeof magic);
  std::memcpy(&magic, first.data(), first.size());
  return magic == session::kMagic;
}

}  // namespace oomrec::tools::recording
