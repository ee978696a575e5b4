#include "common/system/resident_pages.h"

#include <fcntl.h>

#include <algorithm>

#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::system {

bool read_resident_pages(std::uint64_t start, std::size_t pages, bool* resident) noexcept {
  constexpr std::uint64_t kPageBytes = 4096, kPresent = std::uint64_t{1} << 63;
  constexpr std::size_t kEntriesOfARead = 128;  // a hook uses little stack
  char path[sizeof g_roots.proc + 16];
  Text(path) << g_roots.proc << "/self/pagemap";
  const File file = File::open(path, O_RDONLY);
  for (std::size_t done = 0; done < pages;) {
    std::uint64_t entries[kEntriesOfARead];
    const std::size_t count = std::min(pages - done, kEntriesOfARead);
    const std::uint64_t offset = (start / kPageBytes + done) * sizeof entries[0];
    if (file.read_at(offset, entries, count * sizeof entries[0]) !=
        static_cast<long>(count * sizeof entries[0]))
      return false;
    for (std::size_t i = 0; i < count; ++i) resident[done + i] = (entries[i] & kPresent) != 0;
    done += count;
  }
  return true;
}

}  // namespace oomrec::system
