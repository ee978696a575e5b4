#include "common/system/guard_regions.h"

#include <sys/ioctl.h>

#include "common/system/pagemap.h"
#include "common/system/syscalls.h"

namespace oomrec::system {
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
