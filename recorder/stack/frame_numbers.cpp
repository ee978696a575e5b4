// An index of the session's frames, private: numbers by hash, open addressing, doubled when three
// quarters full.
#include "recorder/stack/frame_numbers.h"

#include "common/system/memory.h"

namespace oomrec::stack {
namespace {

constexpr std::uint64_t kFirstSlots = 1024;

struct Slots {
  std::uint32_t* at;  // 0: free
  std::uint64_t count, used;
};
constinit Slots g_slots{};

// Where the word is, or belongs.
std::uint32_t& slot_of(const Slots& slots, std::uint64_t word) noexcept {
  std::uint64_t hash = (word ^ word >> 32) * 0x9e3779b97f4a7c15u >> 32;
  for (;; ++hash) {
    std::uint32_t& slot = slots.at[hash & (slots.count - 1)];
    if (slot == 0 || word_of_frame(slot) == word) return slot;
  }
}

bool grow() noexcept {
  const std::uint64_t count = g_slots.count == 0 ? kFirstSlots : 2 * g_slots.count;
  auto* const at = static_cast<std::uint32_t*>(
      system::map_private(count * sizeof(std::uint32_t), system::Pages::populated));
  if (at == nullptr) return false;
  const Slots larger{at, count, g_slots.used};
  for (std::uint64_t i = 0; i < g_slots.count; ++i)
    if (const std::uint32_t number = g_slots.at[i]; number != 0)
      slot_of(larger, word_of_frame(number)) = number;
  if (g_slots.at != nullptr) system::unmap(g_slots.at, g_slots.count * sizeof(std::uint32_t));
  g_slots = larger;
  return true;
}

}  // namespace

std::uint32_t number_of_frame(InHook hook, std::uint64_t word) noexcept {
  const bool is_full = g_slots.used >= g_slots.count / 4 * 3;
  if (is_full && !grow() && g_slots.used >= g_slots.count / 16 * 15) return 0;
  std::uint32_t& slot = slot_of(g_slots, word);
  if (slot != 0) return slot;
  std::uint32_t number = 0;
  if (!session::g_session.frames.append(hook, number,
                                        [&](session::Frame& frame) { frame.word = word; }))
    return 0;
  slot = number;
  ++g_slots.used;
  return number;
}

void reset_frame_numbers(InHook) noexcept {
  if (g_slots.at != nullptr) system::unmap(g_slots.at, g_slots.count * sizeof(std::uint32_t));
  g_slots = {};
}

}  // namespace oomrec::stack
