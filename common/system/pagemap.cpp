#include "common/system/pagemap.h"

#include <sys/ioctl.h>

#include <algorithm>

#include "common/machine/page.h"
#include "common/system/syscalls.h"

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

namespace {

// As <linux/fs.h> has them since Linux 6.15.
struct FoundPages {
  std::uint64_t start, end, categories;
};
struct ScanRequest {
  std::uint64_t size, flags, start, end, walk_end, found, most_found, most_pages;
  std::uint64_t inverted, all_of, any_of, returned;
};
static_assert(sizeof(FoundPages) == 24 && sizeof(ScanRequest) == 96);
constexpr unsigned long kScanPages = _IOWR('f', 16, ScanRequest);
constexpr std::uint64_t kIsGuard = 1 << 8;

}  // namespace

bool find_guard_region(std::uint64_t start, std::uint64_t end, GuardRegion& region) noexcept {
  const File file = open_pagemap();
  if (!file.is_open()) return false;
  FoundPages found{};
  ScanRequest request{};
  request.size = sizeof request;
  request.start = start;
  request.end = end;
  request.found = reinterpret_cast<std::uint64_t>(&found);
  request.most_found = 1;
  request.all_of = request.returned = kIsGuard;
  if (call(SYS_ioctl, file.descriptor(), kScanPages, &request) != 1) return false;
  region = {found.start, found.end};
  return true;
}

}  // namespace oomrec::system
