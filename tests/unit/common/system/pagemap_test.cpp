#include "common/system/pagemap.h"

#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>

#include "common/machine/page.h"
#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::system {
namespace {

const std::uint64_t kPageBytes = machine::page_bytes();
constexpr int kInstallGuard = 102;  // MADV_GUARD_INSTALL

bool kernel_finds_them() {
  utsname kernel{};
  int major = 0, minor = 0;
  return uname(&kernel) == 0 && std::sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
         (major > 6 || (major == 6 && minor >= 15));
}

TEST_CASE("the guard regions of a mapping are found one after the other") {
  const std::uint64_t kBytes = 40 * kPageBytes;
  void* const mapping =
      mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  const auto start = reinterpret_cast<std::uint64_t>(mapping), end = start + kBytes;
  const auto page = [start](std::uint64_t number) { return start + number * kPageBytes; };
  static_cast<char*>(mapping)[5 * kPageBytes] = 1;

  GuardRegion found{};
  CHECK_FALSE(find_guard_region(start, end, found));
  if (!kernel_finds_them()) {
    MESSAGE("not tested: before Linux 6.15");
  } else {
    REQUIRE(madvise(reinterpret_cast<void*>(page(10)), kPageBytes, kInstallGuard) == 0);
    REQUIRE(madvise(reinterpret_cast<void*>(page(20)), 3 * kPageBytes, kInstallGuard) == 0);
    REQUIRE(find_guard_region(start, end, found));
    CHECK(found.start == page(10));
    CHECK(found.end == page(11));
    REQUIRE(find_guard_region(found.end, end, found));
    CHECK(found.start == page(20));
    CHECK(found.end == page(23));
    CHECK_FALSE(find_guard_region(found.end, end, found));
  }
  munmap(mapping, kBytes);
}

TEST_CASE("without /proc there are none") {
  const Roots kept = g_roots;
  Text(g_roots.proc) << "/nowhere";
  GuardRegion found{};
  CHECK_FALSE(find_guard_region(0, UINT64_MAX & ~(kPageBytes - 1), found));
  g_roots = kept;
}

TEST_CASE("the pages of a mapping that were touched are in memory, across several reads") {
  constexpr std::size_t kPages = 300;
  void* const mapping = mmap(nullptr, kPages * kPageBytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapping != MAP_FAILED);
  madvise(mapping, kPages * kPageBytes, MADV_NOHUGEPAGE);
  const auto is_touched = [](std::size_t page) { return page == 1 || page == 131 || page > 297; };
  for (std::size_t page = 0; page < kPages; ++page)
    if (is_touched(page)) static_cast<char*>(mapping)[page * kPageBytes] = 1;
  const auto start = reinterpret_cast<std::uint64_t>(mapping);

  bool resident[kPages];
  std::fill_n(resident, kPages, true);
  REQUIRE(read_resident_pages(start, kPages, resident));
  for (std::size_t page = 0; page < kPages; ++page) CHECK(resident[page] == is_touched(page));

  munmap(mapping, kPages * kPageBytes);
  REQUIRE(read_resident_pages(start, kPages, resident));
  CHECK(std::count(resident, resident + kPages, true) == 0);
}

TEST_CASE("without /proc it is not known") {
  const Roots kept = g_roots;
  Text(g_roots.proc) << "/nowhere";
  bool resident = true;
  CHECK_FALSE(read_resident_pages(0x1000, 1, &resident));
  CHECK(resident);
  g_roots = kept;
}

}  // namespace
}  // namespace oomrec::system
