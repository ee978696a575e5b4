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

Memory::Location* Memory::find(std::uintptr_t address) {
  const auto known = numbers_.find(address);
  return known == numbers_.end() ? nullptr : &locations_[known->second];
}

std::uint32_t Memory::number_of(std::uintptr_t address) {
  const auto [known, added] =
      numbers_.try_emplace(address, static_cast<std::uint32_t>(locations_.size()));
  if (added) locations_.push_back({address, {{word_at(address), 0, {}}}});
  return known->second;
}

void Memory::load_word(Thread& thread, std::uint32_t location, std::uint32_t message, Order order) {
  const View& view = locations_[location].history[message].view;
  thread.seen.raise(location, message);
  thread.to_acquire.join(view);
  if (acquires(order)) thread.seen.join(view);
}

void Memory::load_newest(Thread& thread, std::uintptr_t address, std::size_t bytes, Order order) {
  for (std::uintptr_t at = down(address, kBytes); at < address + bytes; at += kBytes) {
    const Location* const location = find(at);
    if (location == nullptr) continue;
    load_word(thread, numbers_[at], static_cast<std::uint32_t>(location->history.size() - 1),
              order);
  }
}

View Memory::newest_view(std::uintptr_t address, std::size_t bytes) const {
  View view;
  for (std::uintptr_t at = down(address, kBytes); at < address + bytes; at += kBytes)
    if (const auto known = numbers_.find(at); known != numbers_.end())
      view.join(locations_[known->second].history.back().view);
  return view;
}

void Memory::store(Thread& thread, std::uintptr_t address, std::size_t bytes, Order order,
                   const View* released) {
  for (std::uintptr_t at = down(address, kBytes); at < address + bytes; at += kBytes) {
    const std::uint32_t number = number_of(at);
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
                                std::size_t at_high) const {
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
    // A location that was never stored to has one value.
    Location none{0, {{}}};
    const bool wants_low = pair + kBytes > address;
    const bool wants_high = pair + kBytes < address + bytes;
    Location* const low = wants_low ? find(pair) : nullptr;
    Location* const high = wants_high ? find(pair + kBytes) : nullptr;
    const std::uint32_t low_number = low == nullptr ? 0 : numbers_[pair];
    const std::uint32_t high_number = high == nullptr ? 0 : numbers_[pair + kBytes];
    const Location& of_low = low == nullptr ? none : *low;
    const Location& of_high = high == nullptr ? none : *high;

    std::vector<std::pair<std::uint32_t, std::uint32_t>> possible;
    for (std::uint32_t a = low == nullptr ? 0 : thread.seen.of(low_number);
         a < of_low.history.size(); ++a) {
      for (std::uint32_t b = high == nullptr ? 0 : thread.seen.of(high_number);
           b < of_high.history.size(); ++b)
        if (are_of_same_stores(of_low, a, of_high, b)) possible.emplace_back(a, b);
    }
    const auto [a, b] = possible[choose(possible.size())];
    if (low != nullptr) {
      set_word(low->address, low->history[a].value);
      load_word(thread, low_number, a, order);
    }
    if (high != nullptr) {
      set_word(high->address, high->history[b].value);
      load_word(thread, high_number, b, order);
    }
  }
}

void Memory::place(std::uint64_t stores) {
  for (const Location& location : locations_) {
    std::uint32_t value = 0;
    for (const Message& message : location.history)
      if (message.store <= stores) value = message.value;
    set_word(location.address, value);
  }
}

void Memory::settle() {
  locations_.clear();
  numbers_.clear();
  stores_ = 0;
}

}  // namespace oomrec::weak_memory
