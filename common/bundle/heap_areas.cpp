#include "common/bundle/heap_areas.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cstring>

#include "common/calls/calls.h"
#include "common/machine/page.h"
#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

constexpr std::uint64_t kArenaBytes = std::uint64_t{64} << 20;

int open_process_file(int pid, const char* name) noexcept {
  char path[320];
  text::Text text{path};
  text.add(system::g_roots.proc).add('/').signed_number(pid).add('/').add(name);
  return calls::open_at(AT_FDCWD, text.c_str(), O_RDONLY);
}

std::uint64_t hexadecimal(std::string_view& text) noexcept {
  std::uint64_t value = 0;
  while (!text.empty()) {
    const char c = text.front();
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) break;
    value = value << 4 | static_cast<std::uint64_t>(digit);
    text.remove_prefix(1);
  }
  return value;
}

// "55d0c0a00000-55d0c0a21000 rw-p 00000000 00:00 0        [heap]"
struct Mapping {
  std::uint64_t start = 0, end = 0;
  bool writable = false, accessible = false, anonymous = false, heap = false;
};

Mapping mapping_of(std::string_view line) noexcept {
  Mapping mapping;
  mapping.start = hexadecimal(line);
  if (!line.empty()) line.remove_prefix(1);
  mapping.end = hexadecimal(line);
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
    : text_(buffer.first(buffer.size() / 2)),
      pages_(buffer.subspan(buffer.size() / 2 & ~std::size_t{7})),
      maps_(open_process_file(pid, "maps")),
      pagemap_(open_process_file(pid, "pagemap")) {}

HeapAreas::~HeapAreas() {
  if (maps_ >= 0) calls::close(maps_);
  if (pagemap_ >= 0) calls::close(pagemap_);
}

// A line that does not fit belongs to a file with a very long path; its beginning is enough.
bool HeapAreas::next_line(std::string_view& line) noexcept {
  while (true) {
    const std::string_view unread{text_.data() + begin_, end_ - begin_};
    const std::size_t length = unread.find('\n');
    if (length != unread.npos || (begin_ == 0 && end_ == text_.size())) {
      line = unread.substr(0, length);
      begin_ += std::min(line.size() + 1, unread.size());
      return true;
    }
    std::memmove(text_.data(), unread.data(), unread.size());
    begin_ = 0;
    end_ = unread.size();
    const long got = calls::call(SYS_read, maps_, reinterpret_cast<long>(text_.data() + end_),
                                 static_cast<long>(text_.size() - end_));
    if (got <= 0) return false;
    end_ += static_cast<std::size_t>(got);
  }
}

// Bit 63 of a page's entry: the page is in memory.
std::uint64_t HeapAreas::resident_bytes(const HeapArea& area) noexcept {
  counted_bytes_ += area.bytes();
  if (pagemap_ < 0 || counted_bytes_ > kMaxCountedBytes) return kNotCounted;
  const std::uint64_t page_bytes = machine::page_bytes(), end = area.end / page_bytes;
  std::uint64_t pages = 0;
  for (std::uint64_t at = area.start / page_bytes; at < end;) {
    const std::uint64_t left = (end - at) * sizeof(std::uint64_t);
    const long got = calls::call(
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
