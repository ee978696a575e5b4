// Small live blocks of the heap by address, without a search and without a lock.
//
// One word for every 2^shift bytes of address space, in the session (layout.h, SidePage). 2^shift
// is the minimum distance between two blocks, so a word belongs to one block, and only the block's
// owner changes it: after the real malloc, and before the real free. A page of words is added with
// the first block of its span, and never removed.
//
// glibc's blocks are 32 bytes apart. Other allocators pack closer: 16 bytes, but for blocks of
// eight bytes, which go to the block hash (block_hash.h).
#pragma once

#include <atomic>
#include <cstdint>

#include "common/session/small_block.h"
#include "common/system/hook_scope.h"
#include "common/system/mutex.h"
#include "recorder/session/index.h"
#include "recorder/session/writer.h"

namespace oomrec::live {

class SideTable {
 public:
  // Call it before the first block; without it, no block is taken. The allocator's blocks are at
  // least 2^shift bytes apart, or no larger than half of that.
  void start(std::uint32_t shift) noexcept {
    shift_ = shift;
    least_usable_ = (std::uint64_t{1} << shift) / 2 + 1;
    usable_range_ = session::kSmallBlockBytes - least_usable_;
  }

  // Whether blocks of so many usable bytes belong into this table.
  bool takes(std::uint64_t usable_bytes) const noexcept {
    return usable_bytes - least_usable_ < usable_range_;
  }

  // The block's word; nullptr: no memory for its page, or an address that no allocator returns.
  std::atomic<std::uint64_t>* word_for(InHook hook, std::uint64_t address) noexcept {
    std::atomic<std::uint64_t>* const word = find_word(address);
    return word != nullptr ? word : new_page(hook, address);
  }
  // The same, without adding a page; nullptr also if the span never had a block.
  std::atomic<std::uint64_t>* find_word(std::uint64_t address) noexcept {
    if (std::atomic<std::uint64_t>* const words = latest_words(address))
      return words + slot_in_span(address);
    const std::uint32_t page = index_.find(hash_of(address), any);
    if (page == 0) return nullptr;
    std::atomic<std::uint64_t>* const word = word_in(page, address);
    add_latest(address, word);
    return word;
  }

  std::uint64_t pack(const session::SmallBlock& block) const noexcept {
    return session::packed(block, shift_);
  }
  // The block at `address` in `word`; node 0: none, or another block.
  session::SmallBlock unpack(std::uint64_t word, std::uint64_t address) const noexcept {
    const std::uint64_t slot = address & ~((std::uint64_t{1} << shift_) - 1);
    session::SmallBlock block = session::unpacked(word, slot);
    if (block.address != address) block.node = 0;
    return block;
  }

  // A reader that finds the block also finds the nodes of its stack.
  static void store(std::atomic<std::uint64_t>& word, std::uint64_t packed) noexcept {
    word.store(packed, std::memory_order_release);
  }

  std::uint32_t shift() const noexcept { return shift_; }

  // The words of the address's span, of which the block's is number slot_in_span(): from a table by
  // address without a search, for the latest spans. nullptr: not there.
  std::atomic<std::uint64_t>* latest_words(std::uint64_t address) const noexcept {
    const std::uint64_t entry = spans_[place_of(address)].load(std::memory_order_acquire);
    if (entry >> kPageBits != tag_of(address)) [[unlikely]]
      return nullptr;
    return reinterpret_cast<std::atomic<std::uint64_t>*>(entry << (64 - kPageBits) >> 16);
  }
  std::uint64_t slot_in_span(std::uint64_t address) const noexcept {
    return (address % session::kSideSpanBytes) >> shift_;
  }

  // False: the table never had a block.
  bool used() const noexcept { return used_.load(std::memory_order_relaxed); }

  // After a fork: the session is the parent's.
  void reset(InHook) noexcept;

 private:
  // An entry: the page of the words' address, and above it the bits of the span's address that its
  // place does not tell, and one that is always set. One word, so that readers need no lock.
  static constexpr unsigned kSpanBits = 13;  // 512 MiB
  static constexpr unsigned kPageBits = 36;
  static std::uint64_t tag_of(std::uint64_t address) noexcept {
    return address / session::kSideSpanBytes >> kSpanBits | 1u << (63 - kPageBits);
  }
  static std::size_t place_of(std::uint64_t address) noexcept {
    return address / session::kSideSpanBytes % (1u << kSpanBits);
  }
  void add_latest(std::uint64_t address, const std::atomic<std::uint64_t>* word) noexcept;

  static constexpr auto any = [](std::uint32_t) noexcept { return true; };

  // A bijection on 48-bit addresses, so equal hashes mean the same span. The arenas of an
  // allocator's threads begin at multiples of many spans: the high bits must reach the low ones.
  static std::uint64_t hash_of(std::uint64_t address) noexcept {
    auto span = static_cast<std::uint32_t>(address / session::kSideSpanBytes);
    span = (span ^ span >> 16) * 0x9e3779b1u;
    return span ^ span >> 15;
  }

  std::atomic<std::uint64_t>* word_in(std::uint32_t page, std::uint64_t address) noexcept {
    std::byte* const words = session::g_session.arena.at(std::uint64_t{page} * session::kUnitBytes);
    return reinterpret_cast<std::atomic<std::uint64_t>*>(words) + slot_in_span(address);
  }

  [[gnu::noinline]] std::atomic<std::uint64_t>* new_page(InHook, std::uint64_t address) noexcept;

  std::uint32_t shift_ = session::kLargestSideShift;
  std::uint32_t failed_ = 0;  // requests for pages since there was no memory
  std::atomic<bool> used_{false};
  std::uint64_t least_usable_ = 0;
  std::uint64_t usable_range_ = 0;
  system::Mutex lock_;
  session::Index<session::Outgrown::keep> index_;
  std::atomic<std::uint64_t> spans_[1 << kSpanBits] = {};
};

}  // namespace oomrec::live
