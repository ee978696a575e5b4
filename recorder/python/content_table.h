// Ids in the session, by a hash of the content.
//
// A table in private memory that doubles when three quarters full; every call under the caller's
// lock. A 64-bit hash represents the content: among a million contents,
// two have the same with a chance of 3 in 10^8.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::stack {

struct ContentEntry {
  std::uint64_t hash;  // 0: free
  std::uint32_t id;
  std::uint32_t uses;  // for the caller
};

class ContentTable {
 public:
  // The id of the content with this hash, which is not 0; 0: it has none.
  std::uint32_t id_of(std::uint64_t hash) const noexcept;

  // Stores the id. False: no memory, the next lookup misses again.
  bool add(InHook, std::uint64_t hash, std::uint32_t id) noexcept;

  // The entry of this hash; nullptr: there is none. Valid until the next call.
  ContentEntry* find(std::uint64_t hash) noexcept;
  void erase(std::uint64_t hash) noexcept;

  // Grows the table if it has no free slot. False: no memory.
  bool reserve_one(InHook) noexcept;

  // After a fork.
  void reset(InHook) noexcept;

 private:
  struct Slots;
  static ContentEntry& slot_of(Slots&, std::uint64_t hash) noexcept;

  std::atomic<Slots*> slots_{nullptr};  // a fork finds it whole
};

}  // namespace oomrec::stack
