#include "shim/attach/mappings_before.h"

#include <elf.h>
#include <link.h>
#include <sys/resource.h>

#include <algorithm>

#include "common/machine/page.h"
#include "common/system/hook_scope.h"
#include "common/system/mapping_lines.h"
#include "common/system/memory.h"
#include "common/system/pagemap.h"
#include "common/system/syscalls.h"
#include "recorder/stack/memory_map.h"
#include "shim/interpose/loader.h"

namespace oomrec::shim {
namespace {

constexpr std::uint64_t kSmallest = 64 * 1024;
constexpr std::uint64_t kMostGuard = 64 * 1024;

// What pthread_create takes for a stack: at least so much lies behind the guard page.
std::uint64_t stack_bytes() noexcept {
  constexpr std::uint64_t kUnlimited = std::uint64_t{2} << 20;
  rlimit limit{};
  if (system::call(SYS_prlimit64, 0, RLIMIT_STACK, nullptr, &limit) != 0 ||
      limit.rlim_cur == RLIM_INFINITY)
    return kUnlimited;
  return limit.rlim_cur;
}

// Where the module ends that has this address; the address itself: none has it.
std::uint64_t end_of_module_at(std::uint64_t address) noexcept {
  struct Search {
    std::uint64_t address, end;
    static int visit(dl_phdr_info* info, std::size_t, void* self) noexcept {
      auto& search = *static_cast<Search*>(self);
      std::uint64_t start = UINT64_MAX, end = 0;
      for (int i = 0; i < info->dlpi_phnum; ++i) {
        const ElfW(Phdr)& header = info->dlpi_phdr[i];
        if (header.p_type != PT_LOAD) continue;
        start = std::min(start, info->dlpi_addr + header.p_vaddr);
        end = std::max(end, info->dlpi_addr + header.p_vaddr + header.p_memsz);
      }
      end = machine::page_up(end);
      if (search.address < start || search.address >= end) return 0;
      search.end = end;
      return 1;
    }
  } search{address, address};
  for_each_module(Search::visit, &search);
  return search.end;
}

}  // namespace

MappingsBefore::MappingsBefore(std::uint64_t block_bytes) noexcept
    : pieces_(static_cast<Piece*>(system::map_private(kMost * sizeof(Piece)))),
      block_bytes_(block_bytes),
      stack_bytes_(stack_bytes()) {
  if (pieces_ == nullptr) return;
  const auto own_stack = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  char path[64];
  stack::MemoryMap map{OutsideHooks::in_hook(), path, sizeof path};
  stack::MappedRange last{};
  bool last_is_file = false;
  for (stack::MappedRange range; map.next(range);) {
    const bool adjoins = range.start == last.end;
    const bool is_file = path[0] == '/';
    Piece piece{range.start, range.end};
    const bool is_own = own_stack >= piece.start && own_stack < piece.end;
    if (adjoins && last_is_file) piece.start = std::min(end_of_module_at(piece.start), piece.end);
    const bool is_arena =
        piece.start % system::kArenaBytes == 0 && piece.bytes() <= system::kArenaBytes;
    const bool is_guarded = adjoins && !last_is_file && !last.readable && !last.writable &&
                            last.end - last.start <= kMostGuard;
    if (is_guarded)
      piece.start += std::min(piece.bytes(), stack_bytes_ - std::min(stack_bytes_, page_bytes_));
    if (path[0] == '\0' && range.writable && range.readable && !is_own && !is_arena)
      add_without_stacks(piece);
    last = range;
    last_is_file = is_file;
  }
  take_off_blocks_not_found();
}

MappingsBefore::~MappingsBefore() {
  if (pieces_ != nullptr) system::unmap(pieces_, kMost * sizeof(Piece));
}

// Without what the recorder has kept of an earlier recording.
void MappingsBefore::add(const Piece& piece) noexcept {
  if (piece.bytes() < kSmallest || count_ == kMost) return;
  for (const system::OwnMemory::Range& own : system::g_own_memory.ranges) {
    const std::uint64_t start = own.start.load(std::memory_order_relaxed);
    const std::uint64_t end = own.end.load(std::memory_order_relaxed);
    if (start == 0 || end <= piece.start || start >= piece.end) continue;
    if (piece.start < start) add({piece.start, start});
    if (end < piece.end) add({end, piece.end});
    return;
  }
  pieces_[count_++] = piece;
}

bool MappingsBefore::is_resident(std::uint64_t page, std::uint64_t end) noexcept {
  if (page < window_ || page >= window_end_) {
    if (windows_left_ == 0) return false;
    --windows_left_;
    window_ = page;
    window_end_ = std::min(end, page + kWindowPages * page_bytes_);
    if (!system::read_resident_pages(window_, (window_end_ - window_) / page_bytes_, resident_))
      window_end_ = window_;
  }
  return page < window_end_ && resident_[(page - window_) / page_bytes_];
}

// The bytes of the block of malloc's that has a mapping of its own here; 0: there is none. Its
// header is the size of the mapping, without a header since glibc 2.43, with the flag IS_MMAPPED.
std::uint64_t MappingsBefore::block_at(std::uint64_t address, std::uint64_t most) const noexcept {
  constexpr std::uint64_t kFlags = 7, kMapped = 2, kHeaderBytes = 16;
  const std::uint64_t size = reinterpret_cast<const std::uint64_t*>(address)[1];
  const std::uint64_t named = size & ~kFlags;
  const std::uint64_t bytes = named % page_bytes_ == 0 ? named : named + kHeaderBytes;
  const bool is_block = (size & kFlags) == kMapped && bytes % page_bytes_ == 0 && named != 0 &&
                        bytes <= most && bytes <= block_bytes_;
  return is_block ? bytes : 0;
}

// Stacks with guard regions adjoin each other, and whatever else the program has mapped.
void MappingsBefore::add_without_stacks(const Piece& piece) noexcept {
  std::uint64_t from = piece.start;
  const std::uint64_t scanned = std::min(piece.bytes(), scan_left_), scan_end = from + scanned;
  scan_left_ -= scanned;
  system::GuardRegion guard;
  while (from < scan_end && system::find_guard_region(from, scan_end, guard)) {
    if (from < guard.start) add_without_blocks({from, guard.start});
    from = guard.end + std::min(stack_bytes_, piece.end - guard.end);
  }
  if (from < piece.end) add_without_blocks({from, piece.end});
}

void MappingsBefore::add_without_blocks(const Piece& piece) noexcept {
  std::uint64_t from = piece.start, at = piece.start;
  while (at < piece.end && block_bytes_ != 0 && looks_left_ != 0 && windows_left_ != 0) {
    std::uint64_t block = 0;
    if (is_resident(at, piece.end)) {
      block = block_at(at, piece.end - at);
      if (block == 0) --looks_left_;
    }
    if (block != 0) {
      if (from < at) add({from, at});
      block_bytes_ -= block;
      from = at + block;
    }
    at += std::max(block, page_bytes_);
  }
  if (from < piece.end) add({from, piece.end});
}

void MappingsBefore::take_off_blocks_not_found() noexcept {
  while (block_bytes_ != 0 && count_ != 0) {
    Piece* const largest = std::max_element(
        pieces_, pieces_ + count_,
        [](const Piece& one, const Piece& other) { return one.bytes() < other.bytes(); });
    const std::uint64_t bytes = std::min(block_bytes_, largest->bytes());
    if (bytes == 0) break;
    largest->end -= bytes;
    block_bytes_ -= bytes;
  }
  Piece* const end = std::remove_if(pieces_, pieces_ + count_,
                                    [](const Piece& piece) { return piece.bytes() == 0; });
  count_ = static_cast<std::size_t>(end - pieces_);
}

}  // namespace oomrec::shim
