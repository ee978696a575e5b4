// What has been given a number in the session, by a hash of its content.
//
// Private memory, in a table that doubles when three quarters full; every call under the caller's
// lock. Nothing is ever taken out. 64 bits of hash stand for the content: two of a million contents
// have the same with a chance of 3 in 10^8.
#pragma once

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"

namespace oomrec::stack {

struct KnownContent {
  std::uint64_t hash;  // 0: free
  std::uint32_t id;
  std::uint32_t reserved;
};

class ContentTable {
 public:
  // The number of the content with this hash, which is not 0; 0: it has none.
  std::uint32_t id_of(std::uint64_t hash) const noexcept;

  // Gives it one. False: there is no room, and it will be asked for again.
  bool add(InHook, std::uint64_t hash, std::uint32_t id) noexcept;

  // Whether one more can be added.
  bool has_room(InHook) noexcept;

  // After a fork.
  void forget(InHook) noexcept;

 private:
  struct Places;
  static KnownContent& place_of(Places&, std::uint64_t hash) noexcept;

  std::atomic<Places*> places_{nullptr};  // a fork finds it whole
};

}  // namespace oomrec::stack
