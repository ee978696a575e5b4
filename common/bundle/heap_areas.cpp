#include "common/bundle/heap_areas.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "common/machine/page.h"
#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

using system::kArenaBytes;

int open_process_file(int pid, const char* name) noexcept {
  char path[320];
  text::Text text{path};
  text.add(system::g_roots.proc).add('/').signed_number(pid).add('/').add(name);
  return system::open_at(AT_FDCWD, text.c_str(), O_RDONLY);
}

// "55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0        [heap]"
struct Mapping {
  std::uint64_t start = 0, end = 0;
  bool writable = false, accessible = false, anonymous = false, heap = false;
};

Mapping mapping_of(std::string_view line) noexcept {
  Mapping mapping;
  mapping.start = system::take_hexadecimal(line);
  if (!line.empty()) line.remove_prefix(1);
  mapping.end = system::take_hexadecimal(line);
  mapping.accessible = line.starts_with(" r");
  mapping.writable = line.starts_with(" rw-p");
  mapping.heap = line.ends_with("[heap]");
  const auto name = line.find_first_of("/[");  // where the kernel names them
  mapping.anonymous = line.find(" 00:00 0") != line.npos &&
                      (name == line.npos || line.substr(name).starts_with("[anon:"));
  return mapping;
}

// The arena in a writable mapping, which the next mapping tells; else empty. The kernel joins an
// arena to another mapping that happens to end where it starts.
HeapArea arena_in(HeapArea writable, const Mapping& next) noexcept {
  // The rest of the arena: reserved, not yet writable.
  const bool is_rest = next.anonymous && !next.accessible && next.start == writable.end &&
                       next.end % kArenaBytes == 0;
  if (writable.start % kArenaBytes == 0)
    return is_rest || writable.end % kArenaBytes == 0 ? writable : HeapArea{};
  const std::uint64_t start = next.end - kArenaBytes;
  if (!is_rest || start < writable.start || start >= writable.end) return {};
  writable.start = start;
  return writable;
}

}  // namespace

HeapAreas::HeapAreas(int pid, std::span<char> buffer) noexcept
    : lines_(buffer.first(buffer.size() / 2)),
      pages_(buffer.subspan(buffer.size() / 2 & ~std::size_t{7})),
      maps_(open_process_file(pid, "maps")),
      pagemap_(open_process_file(pid, "pagemap")) {}

HeapAreas::~HeapAreas() {
  if (maps_ >= 0) system::close(maps_);
  if (pagemap_ >= 0) system::close(pagemap_);
}

bool HeapAreas::next_line(std::string_view& line) noexcept {
  return lines_.next(line, [&](char* to, std::size_t bytes) noexcept {
    return system::fallible_call(SYS_read, maps_, reinterpret_cast<long>(to),
                                 static_cast<long>(bytes));
  });
}

// Bit 63 of a page's entry: the page is in memory.
std::uint64_t HeapAreas::resident_bytes(const HeapArea& area) noexcept {
  counted_bytes_ += area.bytes();
  if (pagemap_ < 0 || counted_bytes_ > kMaxCountedBytes) return kNotCounted;
  const std::uint64_t page_bytes = machine::page_bytes(), end = area.end / page_bytes;
  std::uint64_t pages = 0;
  for (std::uint64_t at = area.start / page_bytes; at < end;) {
    const std::uint64_t left = (end - at) * sizeof(std::uint64_t);
    const long got = system::fallible_call(
        SYS_pread64, pagemap_, reinterpret_cast<long>(pages_.data()),
        static_cast<long>(std::min<std::uint64_t>(left, pages_.size() & ~std::size_t{7})),
        static_cast<long>(at * sizeof(std::uint64_t)));
    if (got < static_cast<long>(sizeof(std::uint64_t))) return kNotCounted;
    for (long i = 0; i + 8 <= got; i += 8) {
      std::uint64_t entry = 0;
      std::memcpy(&entry, pages_.data() + i, sizeof entry);
      pages += entry >> 63;
    }
    at += static_cast<std::uint64_t>(got) / sizeof(std::uint64_t);
  }
  return pages * page_bytes;
}

bool HeapAreas::next(HeapArea& area) noexcept {
  std::string_view line;
  while (is_open() && next_line(line)) {
    const Mapping mapping = mapping_of(line);
    const HeapArea arena = arena_in(candidate_, mapping);
    candidate_ = {};
    if (mapping.end <= mapping.start) continue;  // not a line of the kernel's
    if (mapping.writable && mapping.anonymous) candidate_ = {mapping.start, mapping.end, 0, false};
    if (mapping.heap) {
      area = {mapping.start, mapping.end, 0, true};
    } else if (arena.end != 0) {
      area = arena;
    } else {
      continue;
    }
    area.resident_bytes = resident_bytes(area);
    return true;
  }
  return false;
}

}  // namespace oomrec::bundle
