// The file or private memory behind a session, mapped piece by piece.
//
// Promise: the disk blocks of a page are allocated before it is first touched, so that a full disk
// cannot raise SIGBUS; nothing beyond the budget is touched; open() is the last use of the
// descriptor. A new piece is a copy of the last one's mapping, further on in the file (mremap
// with old size 0). Prohibition: nothing is unmapped before close(): references stay valid.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/session/view.h"
#include "common/system/hook_scope.h"
#include "common/system/mutex.h"

namespace oomrec::session {

// What close() leaves at the address of the first page: nothing, private zeros, or the page.
enum class FirstPage : std::uint8_t { unmapped, zeros, kept };

class Arena {
 public:
  // Maps the first piece: of the file `descriptor`, which is file_bytes long, or of private
  // memory when it is −1. `budget_bytes` limits populate(). False: no address space.
  bool open(InHook, int descriptor, std::uint64_t file_bytes, std::uint64_t budget_bytes) noexcept;

  // Unmaps everything. FirstPage::zeros is for Session::detach(), kept
  // for Session::close(): the file then gives back the rest of its memory.
  void close(InHook, FirstPage) noexcept;

  // Reserves `bytes` of the file: whole units of 4 KiB, inside one piece; maps new pieces when
  // needed. Returns the offset; 0: the file or the address space is exhausted. Do not touch before
  // populate().
  std::uint64_t take(InHook, std::uint64_t bytes) noexcept;

  // Maps the first `bytes` of the file, as far as there is address space.
  void map_ahead(InHook, std::uint64_t bytes) noexcept;

  // Backs [offset, offset + bytes), whole units, by memory, and the rest of their pages. False:
  // disk full, budget used up, or a sandbox forbids system calls. madvise, a microsecond for each 4
  // pages.
  bool populate(InHook, std::uint64_t offset, std::uint64_t bytes) noexcept;

  // The same for what several threads may be populating at a time: the first one then counts it.
  bool populate_uncounted(InHook, std::uint64_t offset, std::uint64_t bytes) noexcept;
  void count(std::uint64_t bytes) noexcept;

  // Keeps so much of the budget in reserve until release_reserve(), to continue with when the rest
  // is used up. is_short(): a populate() failed because of the reserve.
  void set_reserve(std::uint64_t bytes) noexcept {
    reserve_bytes_.store(bytes, std::memory_order_relaxed);
  }
  void release_reserve() noexcept {
    short_.store(false, std::memory_order_relaxed);
    if (reserve_bytes_.exchange(0, std::memory_order_relaxed) != 0)
      reserve_released_.store(true, std::memory_order_relaxed);
  }
  bool is_short() const noexcept { return short_.load(std::memory_order_relaxed); }
  // Tables that failed to grow should try again.
  bool has_released_reserve() const noexcept {
    return reserve_released_.load(std::memory_order_relaxed);
  }

  std::byte* at(std::uint64_t offset) noexcept {
    const std::uint32_t piece = piece_of(offset);
    return pieces_[piece] + (offset - piece_start(piece));
  }
  std::uint64_t populated_bytes() const noexcept {
    return populated_.load(std::memory_order_relaxed);
  }
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  std::uint64_t budget_bytes() const noexcept { return budget_bytes_; }
  std::uint64_t used_bytes() const noexcept { return used_.load(std::memory_order_relaxed); }
  bool is_file() const noexcept { return shared_; }

  // For a View of the writer's own memory, also of what is mapped later.
  Bytes bytes() const noexcept { return {nullptr, pieces_, file_bytes_}; }

 private:
  std::uint64_t piece_bytes(std::uint32_t piece) const noexcept;
  bool map_next_piece() noexcept;
  bool map_up_to(std::uint64_t end) noexcept;
  bool back(std::uint64_t offset, std::uint64_t bytes) noexcept;  // by memory
  bool touch_pages(std::byte* from, std::uint64_t bytes) noexcept;

  std::byte* pieces_[kMaxPieces] = {};
  std::uint64_t file_bytes_ = 0;
  std::uint64_t budget_bytes_ = 0;
  std::atomic<std::uint64_t> reserve_bytes_{0};
  std::atomic<bool> short_{false};
  std::atomic<bool> reserve_released_{false};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> populated_{0};
  std::atomic<std::uint32_t> mapped_{0};  // pieces
  std::atomic<bool> no_populate_{false};  // Linux before 5.14
  bool shared_ = false;
  system::Mutex lock_;
};

}  // namespace oomrec::session
