#include "common/system/resident_pages.h"
#include "common/machine/page.h"

#include <doctest/doctest.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::system {
namespace {

const std::uint64_t kPageBytes = machine::page_bytes();

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
