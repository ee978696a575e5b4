#include "recorder/python/content_table.h"

#include "common/system/memory.h"

namespace oomrec::stack {
namespace {

constexpr std::uint64_t kFirstSlots = 2048;
constexpr std::uint64_t kMaxSlots = 1u << 20;  // 16 MiB of them

}  // namespace

struct ContentTable::Slots {
  std::uint64_t mask;
  std::uint64_t used;
  ContentEntry at[];
};

ContentEntry& ContentTable::slot_of(Slots& slots, std::uint64_t hash) noexcept {
  for (std::uint64_t at = hash;; ++at) {
    ContentEntry& slot = slots.at[at & slots.mask];
    if (slot.hash == hash || slot.hash == 0) return slot;
  }
}

std::uint32_t ContentTable::id_of(std::uint64_t hash) const noexcept {
  Slots* const slots = slots_.load(std::memory_order_relaxed);
  return slots == nullptr ? 0 : slot_of(*slots, hash).id;
}

ContentEntry* ContentTable::find(std::uint64_t hash) noexcept {
  Slots* const slots = slots_.load(std::memory_order_relaxed);
  if (slots == nullptr) return nullptr;
  ContentEntry& entry = slot_of(*slots, hash);
  return entry.hash == 0 ? nullptr : &entry;
}

// Moves back entries that were displaced by the one that is now free.
void ContentTable::erase(std::uint64_t hash) noexcept {
  ContentEntry* const found = find(hash);
  if (found == nullptr) return;
  Slots& slots = *slots_.load(std::memory_order_relaxed);
  auto gap = static_cast<std::uint64_t>(found - slots.at);
  for (std::uint64_t at = (gap + 1) & slots.mask; slots.at[at].hash != 0;
       at = (at + 1) & slots.mask) {
    if (((at - slots.at[at].hash) & slots.mask) < ((at - gap) & slots.mask)) continue;
    slots.at[gap] = slots.at[at];
    gap = at;
  }
  slots.at[gap] = {};
  --slots.used;
}

bool ContentTable::reserve_one(InHook) noexcept {
  Slots* const old = slots_.load(std::memory_order_relaxed);
  const std::uint64_t count = old == nullptr ? 0 : old->mask + 1;
  if (old != nullptr && old->used < count / 4 * 3) return true;
  if (count == kMaxSlots) return false;
  const std::uint64_t wanted = old == nullptr ? kFirstSlots : 2 * count;
  const auto bytes_of = [](std::uint64_t slots) {
    return sizeof(Slots) + slots * sizeof(ContentEntry);
  };
  auto* const larger = static_cast<Slots*>(system::map_private(bytes_of(wanted)));
  if (larger == nullptr) return false;
  larger->mask = wanted - 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (old->at[i].hash != 0) slot_of(*larger, old->at[i].hash) = old->at[i];
  }
  larger->used = old == nullptr ? 0 : old->used;
  slots_.store(larger, std::memory_order_relaxed);
  if (old != nullptr) system::unmap(old, bytes_of(count));
  return true;
}

bool ContentTable::add(InHook hook, std::uint64_t hash, std::uint32_t id) noexcept {
  if (!reserve_one(hook)) return false;
  Slots& slots = *slots_.load(std::memory_order_relaxed);
  slot_of(slots, hash) = {hash, id, 1};
  ++slots.used;
  return true;
}

void ContentTable::reset(InHook) noexcept {
  Slots* const slots = slots_.exchange(nullptr, std::memory_order_relaxed);
  if (slots != nullptr)
    system::unmap(slots, sizeof(Slots) + (slots->mask + 1) * sizeof(ContentEntry));
}

}  // namespace oomrec::stack
