#include "recorder/process/absolute_path.h"

#include "common/system/syscalls.h"
#include "common/system/text.h"

namespace oomrec::recorder {

void make_absolute(const char* path, std::span<char> out) noexcept {
  system::Text text(out.data(), out.size());
  char directory[1024];
  if (path[0] != '/' && system::call(SYS_getcwd, directory, sizeof(directory)) > 0)
    text << directory << '/';
  text << path;
}

}  // namespace oomrec::recorder
