// Entries that are used again, while readers may be reading them: View::read() returns an entry as
// it was before, as it is afterwards, or zero.
//
// Its first word, the *guard*, is 0 while it changes. Killed in between, the writer leaves a free
// entry. Where a later entry can have the same guard as an earlier one (a block at the same
// address), a *version* tells them apart.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "common/session/entries.h"
#include "common/system/hook_scope.h"
#include "recorder/session/table.h"

namespace oomrec::session {

// An entry of one word, which changes as a whole.
template <class T>
std::atomic_ref<u64> word_of(T& entry) noexcept {
  static_assert(sizeof(T) == sizeof(u64));
  return std::atomic_ref{*static_cast<u64*>(static_cast<void*>(&entry))};
}

// Stores an entry that readers may be reading, each word as a whole.
template <class T>
void store_words(T& entry, const T& content) noexcept {
  static_assert(sizeof(T) % sizeof(u64) == 0 && alignof(T) == alignof(u64));
  auto* const to = static_cast<u64*>(static_cast<void*>(&entry));
  const auto words = std::bit_cast<std::array<u64, sizeof(T) / sizeof(u64)>>(content);
  for (std::size_t i = 0; i < words.size(); ++i)
    std::atomic_ref(to[i]).store(words[i], std::memory_order_relaxed);
}

// What a holder is of. Its word is stored last when the entry is used, and first when it is not any
// more: then it is 0.
struct HolderName {
  u32 node;
  u8 space;
  u8 reserved;
  u16 api;
};
inline std::atomic_ref<u64> name_word(HolderEntry& entry) noexcept {
  static_assert(sizeof(HolderName) == sizeof(u64) && offsetof(HolderEntry, api) == 6);
  return std::atomic_ref{*static_cast<u64*>(static_cast<void*>(&entry))};
}
inline HolderName load_name(HolderEntry& entry) noexcept {
  return std::bit_cast<HolderName>(name_word(entry).load(std::memory_order_acquire));
}
inline void store_name(HolderEntry& entry, const HolderName& name) noexcept {
  name_word(entry).store(std::bit_cast<u64>(name), std::memory_order_release);
}

// Changes an entry: `fill` stores all but the guard. `guard` is a std::atomic or a std::atomic_ref.
// Only one thread at a time.
template <class Guard, class Fill>
void rewrite(Guard&& guard, u64 value, Fill&& fill) noexcept {
  guard.store(0, std::memory_order_relaxed);
  // A reader that sees what follows also sees that the guard has changed.
  std::atomic_thread_fence(std::memory_order_release);
  fill();
  guard.store(value, std::memory_order_release);
}

// The slots of a table that one lock guards. A free slot has the number of the next one as its
// holder.
template <class T, Atomic<u64> T::*kGuard>
class Slots {
 public:
  // A slot for a new entry, still free for readers. False: the table is full.
  bool take(InHook hook, Table<T>& table, u32& slot) noexcept {
    slot = free_;
    if (slot == 0) return table.append(hook, slot, [](T&) noexcept {});
    free_ = table.at(slot).holder;
    return true;
  }

  // `fill` stores all but the guard and the version.
  template <class Fill>
  void write(T& entry, u64 guard, Fill&& fill) noexcept {
    rewrite(entry.*kGuard, guard, [&]() noexcept {
      std::atomic_ref(entry.version).store(++version_, std::memory_order_relaxed);
      fill();
    });
  }

  void give_back(Table<T>& table, u32 slot) noexcept {
    T& entry = table.at(slot);
    (entry.*kGuard).store(0, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    entry.holder = free_;
    free_ = slot;
  }

  // After a fork: the session is the parent's.
  void reset() noexcept { free_ = version_ = 0; }

 private:
  u32 free_ = 0;     // the first of the list
  u32 version_ = 0;  // the latest
};

}  // namespace oomrec::session
