#include "tests/unit/weak_memory/memory.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace oomrec::weak_memory {

namespace {

std::uint32_t word_at(std::uintptr_t address) {
  std::uint32_t value;
  std::memcpy(&value, reinterpret_cast<const void*>(address), sizeof value);
  return value;
}
void set_word(std::uintptr_t address, std::uint32_t value) {
  std::memcpy(reinterpret_cast<void*>(address), &value, sizeof value);
}

constexpr std::uintptr_t down(std::uintptr_t address, std::uintptr_t unit) {
  return address - address % unit;
}

}  // namespace

bool Memory::watches(std::uintptr_t address) const {
  for (const Range& range : watched_)
    if (address >= range.start && address < range.end) return true;
  return false;
}

std::uint32_t Memory::known(std::uintptr_t address) const {
  const auto found = numbers_.find(address);
  return found == numbers_.end() ? 0 : found->second;
}

std::uint32_t Memory::known_or_added(std::uintptr_t address) {
  const auto [found, added] =
      numbers_.try_emplace(address, static_cast<std::uint32_t>(locations_.size()));
  if (added) locations_.push_back({address, {{word_at(address), 0, {}}}});
  return found->second;
}

void Memory::load_word(Thread& thread, std::uint32_t location, std::uint32_t message, Order order) {
  const View& view = locations_[location].history[message].view;
  thread.seen.raise(location, message);
  thread.to_acquire.join(view);
  if (acquires(order)) thread.seen.join(view);
  if (order == Order::sequential) at_accesses_.raise(location, message);
}

void Memory::load_newest(Thread& thread, std::uintptr_t address, std::size_t bytes, Order order) {
  for (std::uintptr_t at = down(address, kBytes); at < address + bytes; at += kBytes) {
    const std::uint32_t number = known(at);
    load_word(thread, number, static_cast<std::uint32_t>(locations_[number].history.size() - 1),
              order);
  }
}

View Memory::newest_view(std::uintptr_t address, std::size_t bytes) const {
  View view;
  for (std::uintptr_t at = down(address, kBytes); at < address + bytes; at += kBytes)
    view.join(locations_[known(at)].history.back().view);
  return view;
}

void Memory::store(Thread& thread, std::uintptr_t address, std::size_t bytes, Order order,
                   const View* released) {
  for (std::uintptr_t at = down(address, kBytes); at < address + bytes; at += kBytes) {
    const std::uint32_t number = known_or_added(at);
    pending_.locations.push_back(number);
    thread.seen.raise(number, static_cast<std::uint32_t>(locations_[number].history.size()));
    if (order == Order::sequential) at_accesses_.raise(number, thread.seen.of(number));
  }
  pending_.view = releases(order) ? thread.seen : thread.at_release;
  for (const std::uint32_t number : pending_.locations)
    pending_.view.raise(number, thread.seen.of(number));
  if (released != nullptr) pending_.view.join(*released);
}

void Memory::finish_store() {
  if (pending_.locations.empty()) return;
  ++stores_;
  for (const std::uint32_t number : pending_.locations) {
    Location& location = locations_[number];
    location.history.push_back({word_at(location.address), stores_, pending_.view});
  }
  pending_.locations.clear();
}

// Whether two halves can be what one load of 8 bytes returns: of each store to both, it has seen
// both or none.
bool Memory::are_of_same_stores(const Location& low, std::size_t at_low, const Location& high,
                                std::size_t at_high) {
  std::size_t other = 1;
  for (std::size_t at = 1; at < low.history.size(); ++at) {
    while (other < high.history.size() && high.history[other].store < low.history[at].store)
      ++other;
    if (other == high.history.size()) break;
    if (high.history[other].store == low.history[at].store && (at_low >= at) != (at_high >= other))
      return false;
  }
  return true;
}

std::uint32_t Memory::oldest_for(const Thread& thread, std::uint32_t location, Order order) const {
  std::uint32_t oldest = thread.seen.of(location);
  if (order == Order::sequential)
    oldest = std::max({oldest, at_accesses_.of(location), at_fences_.of(location)});
  return oldest;
}

Memory::Pair Memory::pair_at(const Thread& thread, std::uintptr_t pair, std::uintptr_t address,
                             std::size_t bytes, Order order) const {
  Pair found;
  found.low = pair + kBytes > address ? known(pair) : 0;
  found.high = pair + kBytes < address + bytes ? known(pair + kBytes) : 0;
  const Location &low = locations_[found.low], &high = locations_[found.high];
  for (std::uint32_t a = oldest_for(thread, found.low, order); a < low.history.size(); ++a) {
    for (std::uint32_t b = oldest_for(thread, found.high, order); b < high.history.size(); ++b)
      if (are_of_same_stores(low, a, high, b)) found.possible.emplace_back(a, b);
  }
  return found;
}

void Memory::place(const Pair& pair, std::size_t choice) {
  const auto [a, b] = pair.possible[choice];
  for (const auto& [number, message] : {std::pair{pair.low, a}, std::pair{pair.high, b}})
    if (number != 0)
      set_word(locations_[number].address, locations_[number].history[message].value);
}

void Memory::load(Thread& thread, const Pair& pair, std::size_t choice, Order order) {
  const auto [a, b] = pair.possible[choice];
  for (const auto& [number, message] : {std::pair{pair.low, a}, std::pair{pair.high, b}})
    if (number != 0) load_word(thread, number, message, order);
}

void Memory::load_any(Thread& thread, std::uintptr_t address, std::size_t bytes, Order order,
                      const Choose& choose) {
  for (std::uintptr_t at = down(address, 8); at < address + bytes; at += 8) {
    const Pair pair = pair_at(thread, at, address, bytes, order);
    const std::size_t choice = choose(pair.possible.size());
    place(pair, choice);
    load(thread, pair, choice, order);
  }
}

bool Memory::load_expected(Thread& thread, std::uintptr_t address, std::size_t bytes,
                           const void* expected, Order order, const Choose& choose) {
  Pair pair = pair_at(thread, down(address, 8), address, bytes, order);
  const auto is_there = [&](std::size_t choice) {
    place(pair, choice);
    return std::memcmp(reinterpret_cast<const void*>(address), expected, bytes) == 0;
  };
  for (std::size_t at = pair.possible.size() - 1; at-- != 0;)  // all but the newest
    if (is_there(at)) pair.possible.erase(pair.possible.begin() + static_cast<std::ptrdiff_t>(at));
  const std::size_t choice = choose(pair.possible.size());
  if (is_there(choice)) return true;
  load(thread, pair, choice, order);
  return false;
}

void Memory::place_newest(std::uintptr_t address, std::size_t bytes) {
  for (std::uintptr_t at = down(address, kBytes); at < address + bytes; at += kBytes)
    if (const std::uint32_t number = known(at); number != 0)
      set_word(at, locations_[number].history.back().value);
}

void Memory::fence(Thread& thread, Order order) {
  if (acquires(order)) thread.seen.join(thread.to_acquire);
  if (order == Order::sequential) {
    thread.seen.join(at_accesses_);
    thread.seen.join(at_fences_);
    at_fences_.join(thread.seen);
  }
  if (releases(order)) thread.at_release = thread.seen;
}

void Memory::place(std::uint64_t stores) {
  for (std::size_t number = 1; number < locations_.size(); ++number) {
    std::uint32_t value = 0;
    for (const Message& message : locations_[number].history)
      if (message.store <= stores) value = message.value;
    set_word(locations_[number].address, value);
  }
}

void Memory::settle() {
  locations_.resize(1);
  numbers_.clear();
  stores_ = 0;
  at_accesses_ = at_fences_ = {};
}

}  // namespace oomrec::weak_memory
