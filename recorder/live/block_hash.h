// Live blocks by address: the size and the holder of a block that is freed. Small blocks of exact
// mode are in side_table.h; here are large blocks, sampled blocks, and those that do not fit there.
//
// The entries are in the session, where they outlive the process; the index and the lists of free
// entries are private. Both are sharded by address, with a lock each. In sampled mode most frees
// are of unrecorded blocks: a filter of 32 KiB detects that with one load and no lock.
//
// Invariant (exact mode, nothing dropped): live entries of a space, here and in the side table, are
// as many as Σ live_count of its holders.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "common/system/mutex.h"
#include "recorder/session/index.h"
#include "recorder/session/reuse.h"

namespace oomrec::live {

// A PyTorch block may have the same address as the block it lies in: the heap's, for a tensor in
// host memory. So its key is the next address, which is odd and no allocator's.
constexpr std::uint64_t torch_key(std::uint64_t address) noexcept { return address + 1; }
constexpr std::uint64_t address_of(std::uint64_t key) noexcept { return key & ~std::uint64_t{1}; }

struct Block {
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;  // as its holder counts them
  std::uint32_t holder = 0;
  std::uint32_t weight = 0;  // how many blocks of its kind it represents
  std::uint32_t birth_s = 0;
  std::uint16_t gap_bytes = 0;
};

// Whether a block is in the filter of the heap's frees. Objects of Python have their own
// (object_bits.h): there are so many that the heap's would be full of them.
enum class InFilter : bool { no, yes };

class BlockHash {
 public:
  // False: the table is full. A block still recorded at this address goes to `replaced` (its free
  // passed no hook); replaced.address is 0 if there was none.
  bool insert(InHook, const Block&, Block& replaced, InFilter = InFilter::yes) noexcept;

  // Removes the block at `address`. False: none is recorded there.
  bool remove(InHook, std::uint64_t address, Block& removed, InFilter = InFilter::yes) noexcept;

  // Finds the block at `address`. False: none is recorded there.
  bool find(InHook, std::uint64_t address, Block& found) noexcept;

  // Gives the block in this slot of the table another weight, if the slot has one and no other
  // thread uses its shard: weight_of(block); 0 removes it. Where that differs, changed(block,
  // weight) is called first, and says whether the block is in the filter.
  template <class WeightOf, class Changed>
  void reweigh(InHook, std::uint32_t slot, WeightOf weight_of, Changed changed) noexcept {
    const std::uint64_t address = address_in(slot);
    if (address == 0) return;
    const std::uint64_t hash = session::mix(address);
    Shard& shard = shard_of(hash);
    const system::TryGuard guard(shard.lock);
    if (!guard || address_in(slot) != address) return;
    Block block = block_in(slot);
    const std::uint32_t weight = weight_of(block);
    if (weight == block.weight) return;
    const InFilter filtered = changed(block, weight);
    if (weight != 0) {
      block.weight = weight;
      store(shard, slot, block);
    } else {
      erase(shard, hash, slot);
      if (filtered == InFilter::yes) remove_from_filter(address);
    }
  }

  // False: certainly no block is recorded at `address`.
  bool may_hold(std::uint64_t address) const noexcept {
    return filter_[filter_slot(address)].load(std::memory_order_relaxed) != 0;
  }

  // Whether an insert() has failed since the last call.
  bool was_full() noexcept { return was_full_.exchange(false, std::memory_order_relaxed); }

  // After a fork: the session is the parent's.
  void reset(InHook) noexcept;

 private:
  static constexpr std::uint32_t kShards = 32;
  struct alignas(64) Shard {
    system::Mutex lock;
    session::Slots<session::LiveBlock, &session::LiveBlock::address> slots;
    session::Index<session::Outgrown::unmap> index;
  };

  static std::uint64_t filter_slot(std::uint64_t address) noexcept {
    return address * 0x9e3779b97f4a7c15ULL >> 49;
  }
  Shard& shard_of(std::uint64_t hash) noexcept { return shards_[(hash >> 32) % kShards]; }
  static void store(Shard&, std::uint32_t slot, const Block&) noexcept;
  static std::uint64_t address_in(std::uint32_t slot) noexcept;  // 0: it has no block
  static Block block_in(std::uint32_t slot) noexcept;
  static void erase(Shard&, std::uint64_t hash, std::uint32_t slot) noexcept;
  void add_to_filter(std::uint64_t address) noexcept;
  void remove_from_filter(std::uint64_t address) noexcept;

  Shard shards_[kShards];
  std::atomic<bool> was_full_{false};
  // How many blocks hash to a slot; saturates at 255.
  std::atomic<std::uint8_t> filter_[32 * 1024] = {};
};

}  // namespace oomrec::live
