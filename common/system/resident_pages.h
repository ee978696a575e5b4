// Which pages of this process are in memory, from /proc/self/pagemap.
//
// Not by mincore(): it is in none of systemd's groups of system calls, so that a service with
// SystemCallFilter=@system-service would be killed for it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace oomrec::system {

// Sets resident[i] to whether the page at start + i × machine::page_bytes() is in memory; a page
// that is not mapped is not. False: unknown.
bool read_resident_pages(std::uint64_t start, std::size_t pages, bool* resident) noexcept;

}  // namespace oomrec::system
