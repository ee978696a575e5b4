#include "recorder/stack/frame_numbers.h"

#include "common/system/memory.h"
#include "recorder/session/free_numbers.h"
#include "recorder/session/private_array.h"

namespace oomrec::stack {
namespace {

using session::g_session;

constexpr std::uint64_t kFirstSlots = 1024;

struct Slots {
  std::uint32_t* at;  // 0: free
  std::uint64_t count, used;
};
constinit Slots g_slots{};
constinit session::FreeNumbers g_free;
constexpr std::uint32_t kMostFrames = 1u << 22;
constinit session::PrivateArray<std::uint32_t, kMostFrames> g_nodes;  // of a frame

std::uint64_t home_of(const Slots& slots, std::uint64_t word) noexcept {
  return ((word ^ word >> 32) * 0x9e3779b97f4a7c15u >> 32) & (slots.count - 1);
}
std::uint64_t next(const Slots& slots, std::uint64_t at) noexcept {
  return (at + 1) & (slots.count - 1);
}

// Where the word is, or belongs.
std::uint64_t place_of(const Slots& slots, std::uint64_t word) noexcept {
  for (std::uint64_t at = home_of(slots, word);; at = next(slots, at))
    if (slots.at[at] == 0 || word_of_frame(slots.at[at]) == word) return at;
}

bool grow() noexcept {
  const std::uint64_t count = g_slots.count == 0 ? kFirstSlots : 2 * g_slots.count;
  auto* const at = static_cast<std::uint32_t*>(
      system::map_private(count * sizeof(std::uint32_t), system::Pages::populated));
  if (at == nullptr) return false;
  const Slots larger{at, count, g_slots.used};
  for (std::uint64_t i = 0; i < g_slots.count; ++i)
    if (const std::uint32_t number = g_slots.at[i]; number != 0)
      larger.at[place_of(larger, word_of_frame(number))] = number;
  if (g_slots.at != nullptr) system::unmap(g_slots.at, g_slots.count * sizeof(std::uint32_t));
  g_slots = larger;
  return true;
}

// Frees a slot: moves back entries that were displaced by it.
void close_gap(const Slots& slots, std::uint64_t gap) noexcept {
  for (std::uint64_t at = next(slots, gap); slots.at[at] != 0; at = next(slots, at)) {
    const std::uint64_t home = home_of(slots, word_of_frame(slots.at[at]));
    if (((at - home) & (slots.count - 1)) < ((at - gap) & (slots.count - 1))) continue;
    slots.at[gap] = slots.at[at];
    gap = at;
  }
  slots.at[gap] = 0;
}

std::uint32_t new_frame(InHook hook, std::uint64_t word) noexcept {
  if (const std::uint32_t number = g_free.take(1)) {
    session::word_of(g_session.frames.at(number)).store(word, std::memory_order_release);
    return number;
  }
  std::uint32_t number = g_session.frames.size();
  if (!g_nodes.prepare(hook, number) ||
      !g_session.frames.append(hook, number, [&](session::Frame& frame) { frame.word = word; }))
    return 0;
  return number;
}

}  // namespace

std::uint32_t take_frame(InHook hook, std::uint64_t word) noexcept {
  const bool is_full = g_slots.used >= g_slots.count / 4 * 3;
  if (is_full && !grow() && g_slots.used >= g_slots.count / 16 * 15) return 0;
  std::uint32_t& slot = g_slots.at[place_of(g_slots, word)];
  if (slot == 0) {
    const std::uint32_t number = new_frame(hook, word);
    if (number == 0) return 0;
    slot = number;
    ++g_slots.used;
  }
  ++*g_nodes.find(slot);
  return slot;
}

bool has_frame(std::uint64_t word) noexcept {
  return g_slots.count != 0 && g_slots.at[place_of(g_slots, word)] != 0;
}

void give_back_frame(InHook hook, std::uint32_t number) noexcept {
  std::uint32_t* const nodes = g_nodes.find(number);
  if (nodes == nullptr || *nodes == 0 || --*nodes != 0) return;
  close_gap(g_slots, place_of(g_slots, word_of_frame(number)));
  --g_slots.used;
  session::word_of(g_session.frames.at(number)).store(0, std::memory_order_release);
  g_free.give_back(hook, number);
}

void reset_frame_numbers(InHook hook) noexcept {
  if (g_slots.at != nullptr) system::unmap(g_slots.at, g_slots.count * sizeof(std::uint32_t));
  g_slots = {};
  g_free.reset(hook);
  g_nodes.reset(hook);
}

}  // namespace oomrec::stack
