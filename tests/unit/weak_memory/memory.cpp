#include "tests/unit/weak_memory/memory.h"

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

void Memory::load_any(Thread& thread, std::uintptr_t address, std::size_t bytes, Order order,
                      const std::function<std::size_t(std::size_t)>& choose) {
  for (std::uintptr_t pair = down(address, 8); pair < address + bytes; pair += 8) {
    const std::uint32_t low = pair + kBytes > address ? known(pair) : 0;
    const std::uint32_t high = pair + kBytes < address + bytes ? known(pair + kBytes) : 0;
    const Location &of_low = locations_[low], &of_high = locations_[high];
    std::vector<std::pair<std::uint32_t, std::uint32_t>> possible;
    for (std::uint32_t a = thread.seen.of(low); a < of_low.history.size(); ++a) {
      for (std::uint32_t b = thread.seen.of(high); b < of_high.history.size(); ++b)
        if (are_of_same_stores(of_low, a, of_high, b)) possible.emplace_back(a, b);
    }
    const auto [a, b] = possible[choose(possible.size())];
    for (const auto& [number, message] : {std::pair{low, a}, std::pair{high, b}}) {
      if (number == 0) continue;
      set_word(locations_[number].address, locations_[number].history[message].value);
      load_word(thread, number, message, order);
    }
  }
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
}

}  // namespace oomrec::weak_memory
