// Small live blocks of the heap by address, without a search and without a lock.
//
// One word for every 2^shift bytes of address space, in the session (layout.h, SidePage). 2^shift
// is the least distance of two blocks, so a word belongs to one block, and to whoever owns that
// block: it is stored after the real malloc and cleared before the real free. Pages of words are
// made when the first block of their span comes, and are never given back.
//
// glibc's blocks are 32 bytes apart. Other allocators pack closer: 16 bytes, but for blocks of
// eight bytes, which go to the block hash (block_hash.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "common/session/small_block.h"
#include "common/system/hook_scope.h"
#include "common/system/spin_lock.h"
#include "recorder/live/index.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

class SideTable {
 public:
  // Before the first block. The allocator's blocks are 2^shift bytes apart, or no larger than half
  // of that; without this call no block is taken.
  void start(std::uint32_t shift) noexcept {
    shift_ = shift;
    least_usable_ = (std::uint64_t{1} << shift) / 2 + 1;
    usable_range_ = session::kSmallBlockBytes - least_usable_;
  }

  // Whether blocks of so many usable bytes have words here, if their pages can be had.
  bool takes(std::uint64_t usable_bytes) const noexcept {
    return usable_bytes - least_usable_ < usable_range_;
  }

  // The block's word; nullptr: no page, none to be had, or an address that no allocator gives.
  std::atomic<std::uint64_t>* word_for(InHook hook, std::uint64_t address) noexcept {
    const std::uint32_t page = index_.find(hash_of(address), any);
    return page != 0 ? word_in(page, address) : new_page(hook, address);
  }
  // The same; nullptr also where no block of that span was ever here.
  std::atomic<std::uint64_t>* find_word(std::uint64_t address) noexcept {
    const std::uint32_t page = index_.find(hash_of(address), any);
    return page != 0 ? word_in(page, address) : nullptr;
  }

  std::uint64_t pack(const session::SmallBlock& block) const noexcept {
    return session::packed(block, shift_);
  }
  // What `word`, the one of `address`, says of the block there; node 0: nothing, or another block.
  session::SmallBlock unpack(std::uint64_t word, std::uint64_t address) const noexcept {
    const std::uint64_t slot = address & ~((std::uint64_t{1} << shift_) - 1);
    session::SmallBlock block = session::unpacked(word, slot);
    if (block.address != address) block.node = 0;
    return block;
  }

  // False: no block was ever here.
  bool used() const noexcept { return used_.load(std::memory_order_relaxed); }

  // The session is gone.
  void forget(InHook) noexcept;

 private:
  static constexpr auto any = [](std::uint32_t) noexcept { return true; };

  // One to one on addresses of 48 bits, so that an equal hash is the same span. The areas of an
  // allocator's threads begin at multiples of many spans: the high bits must reach the low ones.
  static std::uint64_t hash_of(std::uint64_t address) noexcept {
    auto span = static_cast<std::uint32_t>(address / session::kSideSpanBytes);
    span = (span ^ span >> 16) * 0x9e3779b1u;
    return span ^ span >> 15;
  }

  std::atomic<std::uint64_t>* word_in(std::uint32_t page, std::uint64_t address) noexcept {
    std::byte* const words = session::g_session.arena.at(std::uint64_t{page} * session::kPageBytes);
    const std::uint64_t slot = (address % session::kSideSpanBytes) >> shift_;
    return reinterpret_cast<std::atomic<std::uint64_t>*>(words) + slot;
  }

  [[gnu::noinline]] std::atomic<std::uint64_t>* new_page(InHook, std::uint64_t address) noexcept;

  std::uint32_t shift_ = session::kLargestSideShift;
  std::uint32_t refused_ = 0;  // pages asked for since there was no room
  std::atomic<bool> used_{false};
  std::uint64_t least_usable_ = 0;
  std::uint64_t usable_range_ = 0;
  system::SpinLock lock_;
  Index<Outgrown::keep> index_;
};

}  // namespace oomrec::live
