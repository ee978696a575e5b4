#include "recorder/python/content_table.h"

#include "common/system/memory.h"

namespace oomrec::stack {
namespace {

constexpr std::uint64_t kFirstPlaces = 2048;
constexpr std::uint64_t kMostPlaces = 1u << 20;  // 16 MiB of them

}  // namespace

struct ContentTable::Places {
  std::uint64_t mask;
  std::uint64_t used;
  KnownContent at[];
};

KnownContent& ContentTable::place_of(Places& places, std::uint64_t hash) noexcept {
  for (std::uint64_t at = hash;; ++at) {
    KnownContent& place = places.at[at & places.mask];
    if (place.hash == hash || place.hash == 0) return place;
  }
}

std::uint32_t ContentTable::id_of(std::uint64_t hash) const noexcept {
  Places* const places = places_.load(std::memory_order_relaxed);
  return places == nullptr ? 0 : place_of(*places, hash).id;
}

bool ContentTable::has_room(InHook) noexcept {
  Places* const old = places_.load(std::memory_order_relaxed);
  const std::uint64_t count = old == nullptr ? 0 : old->mask + 1;
  if (old != nullptr && old->used < count / 4 * 3) return true;
  if (count == kMostPlaces) return false;
  const std::uint64_t wanted = old == nullptr ? kFirstPlaces : 2 * count;
  const auto bytes_of = [](std::uint64_t places) {
    return sizeof(Places) + places * sizeof(KnownContent);
  };
  auto* const larger = static_cast<Places*>(system::map_private(bytes_of(wanted)));
  if (larger == nullptr) return false;
  larger->mask = wanted - 1;
  for (std::uint64_t i = 0; i < count; ++i) {
    if (old->at[i].hash != 0) place_of(*larger, old->at[i].hash) = old->at[i];
  }
  larger->used = old == nullptr ? 0 : old->used;
  places_.store(larger, std::memory_order_relaxed);
  if (old != nullptr) system::unmap(old, bytes_of(count));
  return true;
}

bool ContentTable::add(InHook hook, std::uint64_t hash, std::uint32_t id) noexcept {
  if (!has_room(hook)) return false;
  Places& places = *places_.load(std::memory_order_relaxed);
  place_of(places, hash) = {hash, id, 0};
  ++places.used;
  return true;
}

void ContentTable::forget(InHook) noexcept {
  Places* const places = places_.exchange(nullptr, std::memory_order_relaxed);
  if (places != nullptr)
    system::unmap(places, sizeof(Places) + (places->mask + 1) * sizeof(KnownContent));
}

}  // namespace oomrec::stack
