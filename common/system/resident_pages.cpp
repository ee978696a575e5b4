#include "common/system/resident_pages.h"

#include <algorithm>

#include "common/machine/page.h"
#include "common/system/pagemap.h"

namespace oomrec::system {

bool read_resident_pages(std::uint64_t start, std::size_t pages, bool* resident) noexcept {
  constexpr std::uint64_t kPresent = std::uint64_t{1} << 63;
  constexpr std::size_t kEntriesOfARead = 128;  // a hook uses little stack
  const File file = open_pagemap();
  for (std::size_t done = 0; done < pages;) {
    std::uint64_t entries[kEntriesOfARead];
    const std::size_t count = std::min(pages - done, kEntriesOfARead);
    const std::uint64_t offset = (start / machine::page_bytes() + done) * sizeof entries[0];
    if (file.read_at(offset, entries, count * sizeof entries[0]) !=
        static_cast<long>(count * sizeof entries[0]))
      return false;
    for (std::size_t i = 0; i < count; ++i) resident[done + i] = (entries[i] & kPresent) != 0;
    done += count;
  }
  return true;
}

}  // namespace oomrec::system
