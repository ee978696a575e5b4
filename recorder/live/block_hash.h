// Live blocks by address: what a free gives back, and to whom it belonged. The small blocks of
// exact mode have a table of their own (side_table.h): here are the large, the sampled, and what
// found no place there.
//
// The entries stand in the session, where they outlive the process; the index and the lists of free
// entries are private. Both are sharded by address, a lock each. In sampled mode most frees are of
// blocks that nobody recorded: a filter of 32 KiB says so with one load and no lock.
//
// Invariant (exact mode, nothing dropped): live entries of a space, here and in the side table, are
// as many as Σ live_count of its holders.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/spin_lock.h"
#include "recorder/live/index.h"

namespace oomrec::live {

// PyTorch's blocks begin where the blocks below them do, which are the heap's where a tensor is in
// host memory: theirs are known by the next address, which is odd and no allocator's.
constexpr std::uint64_t torch_key(std::uint64_t address) noexcept { return address + 1; }
constexpr std::uint64_t address_of(std::uint64_t key) noexcept { return key & ~std::uint64_t{1}; }

struct Block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // as asked for
  std::uint32_t holder = 0;
  std::uint32_t weight = 0;  // blocks of its kind that it stands for
  std::uint32_t birth_s = 0;
};

class BlockHash {
 public:
  // False: no room. A block that was still there at the same address goes to `replaced` (its free
  // passed no hook); replaced.address is 0 when there was none.
  bool insert(InHook, const Block&, Block& replaced) noexcept;

  // Takes the block at `address` out. False: none is recorded there.
  bool remove(InHook, std::uint64_t address, Block& removed) noexcept;

  // The block at `address`, which stays. False: none is recorded there.
  bool find(InHook, std::uint64_t address, Block& found) noexcept;

  // False: surely no block is recorded at `address`.
  bool may_hold(std::uint64_t address) const noexcept {
    return filter_[filter_place(address)].load(std::memory_order_relaxed) != 0;
  }

  // The session is gone.
  void forget(InHook) noexcept;

 private:
  static constexpr std::uint32_t kShards = 32;
  struct alignas(64) Shard {
    system::SpinLock lock;
    std::uint32_t free_slot = 0;  // head of the list through LiveBlock::reserved
    Index<Outgrown::unmap> index;
  };

  static std::uint64_t filter_place(std::uint64_t address) noexcept {
    return address * 0x9e3779b97f4a7c15ULL >> 49;
  }
  Shard& shard_of(std::uint64_t hash) noexcept { return shards_[(hash >> 32) % kShards]; }
  void note(std::uint64_t address) noexcept;
  void unnote(std::uint64_t address) noexcept;

  Shard shards_[kShards];
  // How many blocks hash to a place; once at 255 it stays there.
  std::atomic<std::uint8_t> filter_[32 * 1024] = {};
};

}  // namespace oomrec::live
