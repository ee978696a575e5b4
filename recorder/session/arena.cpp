#include "recorder/session/arena.h"

#include <linux/futex.h>
#include <sys/mman.h>

#include <algorithm>

#include "common/machine/page.h"
#include "common/system/memory.h"
#include "common/system/syscalls.h"

namespace oomrec::session {

namespace {

using system::call;

constexpr std::uint64_t whole_units(std::uint64_t bytes) noexcept {
  return (bytes + kUnitBytes - 1) & ~(kUnitBytes - 1);
}

// The mapping at `result`, or nullptr if it is an error.
std::byte* address_of(long result) noexcept {
  return result < 0 && result > -4096 ? nullptr : reinterpret_cast<std::byte*>(result);
}

// The address space that is mapped before it is needed: a program that reaches its RLIMIT_AS leaves
// none, but the refused request and the holders must still be recorded.
constexpr std::uint64_t kept_ahead(std::uint64_t used) noexcept {
  return std::clamp(used / 2, std::uint64_t{256} << 10, kLargestChunkBytes);
}

// A huge page would take 2 MiB for the first byte. And near a cgroup's limit the kernel drops pages
// of a file on disk: if it read others ahead of each that is used again, it would drop those in use
// for them, and the program would stand still instead of being killed.
void advise(std::byte* from, std::uint64_t bytes) noexcept {
  call(SYS_madvise, from, bytes, MADV_NOHUGEPAGE);
  call(SYS_madvise, from, bytes, MADV_RANDOM);
}

}  // namespace

// A piece's size in the file, whose end may lie inside it.
std::uint64_t Arena::piece_bytes(std::uint32_t piece) const noexcept {
  const std::uint64_t start = piece_start(piece);
  return std::min(piece_start(piece + 1), std::max(file_bytes_, start)) - start;
}

bool Arena::open(InHook, int descriptor, std::uint64_t file_bytes,
                 std::uint64_t budget_bytes) noexcept {
  file_bytes_ = file_bytes;
  budget_bytes_ = budget_bytes;
  shared_ = descriptor >= 0;
  const int flags = shared_ ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  pieces_[0] = address_of(
      call(SYS_mmap, nullptr, piece_bytes(0), PROT_READ | PROT_WRITE, flags, descriptor, 0));
  if (pieces_[0] == nullptr) return false;
  advise(pieces_[0], piece_bytes(0));
  mapped_ = 1;
  return true;
}

void Arena::close(InHook, FirstPage first_page) noexcept {
  const std::uint64_t page = machine::page_bytes();
  const std::uint32_t mapped = mapped_.load();
  for (std::uint32_t piece = 0; piece < mapped; ++piece) {
    std::byte* from = pieces_[piece];
    std::uint64_t bytes = piece_bytes(piece);
    if (piece == 0 && first_page == FirstPage::zeros) {
      call(SYS_mmap, from, page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED,
           -1, 0);
    }
    if (piece == 0 && first_page != FirstPage::unmapped) {
      from += page;
      bytes -= page;
    }
    if (shared_ && first_page == FirstPage::kept) call(SYS_madvise, from, bytes, MADV_REMOVE);
    call(SYS_munmap, from, bytes);
    pieces_[piece] = nullptr;
  }
  mapped_ = 0;
  used_ = 0;
  populated_ = 0;
  reserve_bytes_ = 0;
  short_ = false;
  reserve_released_ = false;
}

// The caller holds lock_.
bool Arena::map_next_piece() noexcept {
  const std::uint32_t piece = mapped_.load(std::memory_order_relaxed);
  if (piece == 0 || piece >= kMaxPieces) return false;
  const std::uint64_t bytes = piece_bytes(piece);
  if (bytes == 0) return false;
  std::byte* mapping;
  if (shared_) {
    // The copy begins with the previous piece's last page, so that the new piece follows it in the
    // file. That page is then unmapped.
    const std::uint64_t page = machine::page_bytes();
    std::byte* const last_page = pieces_[piece - 1] + piece_bytes(piece - 1) - page;
    mapping = address_of(call(SYS_mremap, last_page, 0, page + bytes, MREMAP_MAYMOVE));
    if (mapping == nullptr) return false;
    call(SYS_munmap, mapping, page);
    mapping += page;
  } else {
    mapping = address_of(call(SYS_mmap, nullptr, bytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
    if (mapping == nullptr) return false;
  }
  advise(mapping, bytes);
  pieces_[piece] = mapping;
  mapped_.store(piece + 1, std::memory_order_release);
  return true;
}

// The caller holds lock_. False: the file or the address space is exhausted.
bool Arena::map_up_to(std::uint64_t end) noexcept {
  while (piece_start(mapped_.load(std::memory_order_relaxed)) < end)
    if (!map_next_piece()) return false;
  return true;
}

void Arena::map_ahead(InHook, std::uint64_t bytes) noexcept {
  const system::MutexGuard guard{lock_};
  if (guard) map_up_to(bytes);
}

std::uint64_t Arena::take(InHook, std::uint64_t bytes) noexcept {
  bytes = whole_units(bytes);
  if (bytes == 0 || bytes > kSegmentBytes) return 0;
  const system::MutexGuard guard{lock_};
  if (!guard) return 0;
  std::uint64_t offset = used_.load(std::memory_order_relaxed);
  std::uint32_t piece = piece_of(offset);
  while (bytes > piece_start(piece + 1) - offset) offset = piece_start(++piece);
  if (offset > file_bytes_ || bytes > file_bytes_ - offset) return 0;
  if (!map_up_to(offset + bytes)) return 0;
  map_up_to(offset + bytes + kept_ahead(offset));
  used_.store(offset + bytes, std::memory_order_relaxed);
  if (offset != 0) {  // at offset 0 there is no header yet: it is being populated
    reinterpret_cast<Header*>(pieces_[0])
        ->used_bytes.store(offset + bytes, std::memory_order_relaxed);
  }
  return offset;
}

bool Arena::populate(InHook, std::uint64_t offset, std::uint64_t bytes) noexcept {
  bytes = whole_units(bytes);
  const std::uint64_t held_back = reserve_bytes_.load(std::memory_order_relaxed);
  const std::uint64_t wanted = populated_.fetch_add(bytes, std::memory_order_relaxed) + bytes;
  if (wanted <= budget_bytes_ - held_back && back(offset, bytes)) return true;
  populated_.fetch_sub(bytes, std::memory_order_relaxed);
  if (held_back != 0) short_.store(true, std::memory_order_relaxed);
  return false;
}

bool Arena::populate_uncounted(InHook, std::uint64_t offset, std::uint64_t bytes) noexcept {
  bytes = whole_units(bytes);
  const std::uint64_t held_back = reserve_bytes_.load(std::memory_order_relaxed);
  if (populated_bytes() + bytes <= budget_bytes_ - held_back && back(offset, bytes)) return true;
  if (held_back != 0) short_.store(true, std::memory_order_relaxed);
  return false;
}

void Arena::count(std::uint64_t bytes) noexcept {
  populated_.fetch_add(whole_units(bytes), std::memory_order_relaxed);
}

bool Arena::back(std::uint64_t offset, std::uint64_t bytes) noexcept {
  // Whole pages: others may use a part of the first and the last already.
  const auto start = reinterpret_cast<std::uint64_t>(at(offset));
  auto* const from = reinterpret_cast<std::byte*>(machine::page_down(start));
  const std::uint64_t length = machine::page_up(start + bytes) - machine::page_down(start);
  if (!no_populate_.load(std::memory_order_relaxed)) {
    const long result = system::populate(from, length);
    if (result == 0) return true;
    if (result == -EINVAL) no_populate_.store(true, std::memory_order_relaxed);
  }
  return no_populate_.load(std::memory_order_relaxed) && touch_pages(from, length);
}

// The kernel adds nothing to a word of each page, and returns EFAULT where our own store would
// raise SIGBUS.
bool Arena::touch_pages(std::byte* from, std::uint64_t bytes) noexcept {
  constexpr unsigned kAddNothing = FUTEX_OP(FUTEX_OP_ADD, 0, FUTEX_OP_CMP_EQ, 0);
  for (std::byte* page = from; page < from + bytes; page += machine::page_bytes())
    if (call(SYS_futex, page, FUTEX_WAKE_OP_PRIVATE, 0, 0, page, kAddNothing) < 0) return false;
  return true;
}

}  // namespace oomrec::session
