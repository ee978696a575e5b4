// What the kernel's page table of this process says, /proc/self/pagemap: which pages are in memory,
// and where guard regions are.
#pragma once

#include <fcntl.h>

#include <cstddef>
#include <cstdint>

#include "common/system/files.h"
#include "common/system/text.h"

namespace oomrec::system {

// Not open: there is no /proc, or it may not be read.
inline File open_pagemap() noexcept {
  char path[sizeof g_roots.proc + 16];
  Text(path) << g_roots.proc << "/self/pagemap";
  return File::open(path, O_RDONLY);
}

// Sets resident[i] to whether the page at start + i × machine::page_bytes() is in memory; a page
// that is not mapped is not. False: unknown. Not by mincore(): it is in none of systemd's groups of
// system calls, so that a service with SystemCallFilter=@system-service would be killed for it.
bool read_resident_pages(std::uint64_t start, std::size_t pages, bool* resident) noexcept;

// A guard region of this process' memory (madvise(MADV_GUARD_INSTALL), Linux 6.13), by which glibc
// 2.42 and newer protects the end of a thread's stack. /proc/self/maps shows none of them:
// adjoining stacks are one mapping there. /proc/self/pagemap finds them, from Linux 6.15 on.
struct GuardRegion {
  std::uint64_t start, end;
};

// The first guard region of these pages; false: they have none, or it is unknown. Costs a look at
// each page that is in memory before it. Keeps no descriptor: a process may have few.
bool find_guard_region(std::uint64_t start, std::uint64_t end, GuardRegion&) noexcept;

}  // namespace oomrec::system
