#include "recorder/live/block_hash.h"

#include "recorder/session/writer.h"

namespace oomrec::live {

using session::g_session;
using session::LiveBlock;

namespace {

constexpr std::uint8_t kSaturated = 255;
constexpr std::uint64_t kMostBytes = (std::uint64_t{1} << 48) - 1;  // in an entry

Block copy_of(const LiveBlock& slot) noexcept {
  return {slot.address.load(std::memory_order_relaxed),
          slot.bytes,
          slot.holder,
          slot.weight,
          slot.birth_s,
          static_cast<std::uint16_t>(slot.gap_bytes)};
}

auto at_address(std::uint64_t address) noexcept {
  return [address](std::uint32_t slot) noexcept {
    return g_session.live_blocks.at(slot).address.load(std::memory_order_relaxed) == address;
  };
}

}  // namespace

bool BlockHash::insert(InHook hook, const Block& block, Block& replaced,
                       InFilter filtered) noexcept {
  replaced.address = 0;
  const std::uint64_t hash = session::mix(block.address);
  Shard& shard = shard_of(hash);
  const system::MutexGuard guard(shard.lock);
  if (!guard) return false;

  if (const std::uint32_t slot = shard.index.find(hash, at_address(block.address))) {
    replaced = copy_of(g_session.live_blocks.at(slot));
    store(shard, slot, block);
    return true;
  }

  std::uint32_t slot = 0;
  if (!shard.slots.take(hook, g_session.live_blocks, slot)) {
    was_full_.store(true, std::memory_order_relaxed);
    return false;
  }
  if (!shard.index.insert(hook, hash, slot)) {
    was_full_.store(true, std::memory_order_relaxed);
    shard.slots.give_back(g_session.live_blocks, slot);
    return false;
  }
  store(shard, slot, block);
  if (filtered == InFilter::yes) add_to_filter(block.address);
  return true;
}

bool BlockHash::find(InHook, std::uint64_t address, Block& found) noexcept {
  const std::uint64_t hash = session::mix(address);
  Shard& shard = shard_of(hash);
  const system::MutexGuard guard(shard.lock);
  if (!guard) return false;
  const std::uint32_t slot = shard.index.find(hash, at_address(address));
  if (slot != 0) found = copy_of(g_session.live_blocks.at(slot));
  return slot != 0;
}

bool BlockHash::remove(InHook, std::uint64_t address, Block& removed, InFilter filtered) noexcept {
  const std::uint64_t hash = session::mix(address);
  Shard& shard = shard_of(hash);
  const system::MutexGuard guard(shard.lock);
  if (!guard) return false;
  const std::uint32_t slot = shard.index.erase(hash, at_address(address));
  if (slot == 0) return false;
  removed = copy_of(g_session.live_blocks.at(slot));
  shard.slots.give_back(g_session.live_blocks, slot);
  if (filtered == InFilter::yes) remove_from_filter(address);
  return true;
}

void BlockHash::reset(InHook hook) noexcept {
  for (Shard& shard : shards_) {
    shard.lock.unlock();
    shard.slots.reset();
    shard.index.reset(hook);
  }
  for (auto& place : filter_) place.store(0, std::memory_order_relaxed);
}

std::uint64_t BlockHash::address_in(std::uint32_t slot) noexcept {
  return g_session.live_blocks.at(slot).address.load(std::memory_order_relaxed);
}

Block BlockHash::block_in(std::uint32_t slot) noexcept {
  return copy_of(g_session.live_blocks.at(slot));
}

void BlockHash::erase(Shard& shard, std::uint64_t hash, std::uint32_t slot) noexcept {
  shard.index.erase(hash, [slot](std::uint32_t number) { return number == slot; });
  shard.slots.give_back(g_session.live_blocks, slot);
}

void BlockHash::store(Shard& shard, std::uint32_t slot, const Block& block) noexcept {
  LiveBlock& entry = g_session.live_blocks.at(slot);
  shard.slots.write(entry, block.address, [&]() noexcept {
    entry.bytes = block.bytes & kMostBytes;
    entry.gap_bytes = block.gap_bytes;
    entry.holder = block.holder;
    entry.weight = block.weight;
    entry.birth_s = block.birth_s;
  });
}

// Several shards share a slot, so the lock of one is not enough.
void BlockHash::add_to_filter(std::uint64_t address) noexcept {
  auto& place = filter_[filter_slot(address)];
  std::uint8_t seen = place.load(std::memory_order_relaxed);
  while (seen != kSaturated &&
         !place.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen + 1),
                                      std::memory_order_relaxed)) {
  }
}

void BlockHash::remove_from_filter(std::uint64_t address) noexcept {
  auto& place = filter_[filter_slot(address)];
  std::uint8_t seen = place.load(std::memory_order_relaxed);
  while (seen != kSaturated && seen != 0 &&
         !place.compare_exchange_weak(seen, static_cast<std::uint8_t>(seen - 1),
                                      std::memory_order_relaxed)) {
  }
}

}  // namespace oomrec::live
