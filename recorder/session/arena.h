// The file or private memory behind a session, mapped segment by segment.
//
// Promise: a page is taken from the disk before it is first touched, so that a full disk cannot
// raise SIGBUS; nothing beyond the budget is ever touched; no descriptor is needed after open(). A
// new segment is a copy of the last one's mapping, moved on in the file (mremap with old size 0).
// Prohibition: nothing is given back before close(): a reference into the arena stays good.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "common/session/view.h"
#include "common/system/hook_scope.h"
#include "common/system/spin_lock.h"

namespace oomrec::session {

class Arena {
 public:
  // Maps the first segment: of the file `descriptor`, which is file_bytes long, or of private
  // memory when it is −1. `budget_bytes` bounds what populate() takes. False: no address space.
  bool open(InHook, int descriptor, std::uint64_t file_bytes, std::uint64_t budget_bytes) noexcept;

  // Unmaps everything. `keep_first_page`: leaves private zeroes there, see Session::detach().
  void close(InHook, bool keep_first_page) noexcept;

  // Reserves `bytes` of the file: whole pages, inside one segment; a new segment is mapped when
  // needed. Returns the offset, 0 when the file or the address space is exhausted. Not to be
  // touched before populate().
  std::uint64_t take(InHook, std::uint64_t bytes) noexcept;

  // Makes [offset, offset + bytes), never populated before, backed by pages; whole pages. False: no
  // room (disk full, budget), or no system call may be made. madvise, a microsecond for each 4
  // pages.
  bool populate(InHook, std::uint64_t offset, std::uint64_t bytes) noexcept;

  // So much of the budget is not given out before give_held_back(): room to go on with when the
  // rest is used up. is_short(): something was refused for it.
  void hold_back(std::uint64_t bytes) noexcept {
    held_back_bytes_.store(bytes, std::memory_order_relaxed);
  }
  void give_held_back() noexcept {
    short_.store(false, std::memory_order_relaxed);
    if (held_back_bytes_.exchange(0, std::memory_order_relaxed) != 0)
      given_back_.store(true, std::memory_order_relaxed);
  }
  bool is_short() const noexcept { return short_.load(std::memory_order_relaxed); }
  // Who was refused before asks again.
  bool has_given_back() const noexcept { return given_back_.load(std::memory_order_relaxed); }

  std::byte* at(std::uint64_t offset) noexcept {
    return segments_[offset / kSegmentBytes] + offset % kSegmentBytes;
  }
  std::uint64_t populated_bytes() const noexcept {
    return populated_.load(std::memory_order_relaxed);
  }
  std::uint64_t file_bytes() const noexcept { return file_bytes_; }
  std::uint64_t used_bytes() const noexcept { return used_.load(std::memory_order_relaxed); }
  bool is_file() const noexcept { return shared_; }

  Bytes bytes() const noexcept;  // for a View of the writer's own memory

 private:
  std::uint64_t segment_bytes(std::uint64_t segment) const noexcept;
  bool map_next_segment() noexcept;
  bool touch_pages(std::byte* from, std::uint64_t bytes) noexcept;

  std::byte* segments_[kMaxSegments] = {};
  std::uint64_t file_bytes_ = 0;
  std::uint64_t budget_bytes_ = 0;
  std::atomic<std::uint64_t> held_back_bytes_{0};
  std::atomic<bool> short_{false};
  std::atomic<bool> given_back_{false};
  std::atomic<std::uint64_t> used_{0};
  std::atomic<std::uint64_t> populated_{0};
  std::atomic<std::uint32_t> mapped_{0};  // segments
  std::atomic<bool> no_populate_{false};  // Linux before 5.14
  bool shared_ = false;
  system::SpinLock lock_;
};

}  // namespace oomrec::session
