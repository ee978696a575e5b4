// What a fork's child has from its parent's heap, and of Python's small objects: one holder for
// each of the parent's largest, with the parent's stack. The rest of the heap is one holder, and so
// are all mappings, except that those of Python's pool belong to the child's.
#pragma once

#include <cstdint>
#include <span>

#include "common/system/hook_scope.h"

namespace oomrec::recorder {

// In the child, while the parent's session is still open: copies its largest holders. Takes some
// 20 µs, and 10 ns more for each block on record, if there are sampled objects of Python.
void copy_inherited(InHook) noexcept;

// Whether the parent had a pool of Python's objects.
bool inherits_pool() noexcept;

// In the child's session: adds the holders, and gives the rest of these totals to
// g_state.inherited_holder. `node`: of the rest.
void add_inherited_heap(InHook, std::uint32_t node, std::uint64_t live_bytes,
                        std::uint64_t live_count) noexcept;

// Once the mappings of Python's pool are its holder's: moves the objects' share to holders of their
// own.
void add_inherited_objects(InHook) noexcept;

// The child frees a block that it has not recorded: the parent's, of the holder whose blocks have
// this size, else of the rest. With or without a session of its own yet.
void release_inherited(InHook, std::uint64_t usable_bytes) noexcept;

// The same for an object that was on record in the parent.
void release_inherited_object(InHook, std::uint64_t address) noexcept;

// Forgets everything, for a recording that begins in the same process.
void forget_inherited(InHook) noexcept;

// The small objects of Python that a fork's child has from its parent: those that the parent
// sampled, each with the number of the row that holds it. So when the child frees one, the row that
// it belonged to shrinks.
//
// A copy of the parent's entries, in private memory, because the parent's session is its own again
// after the fork.
class InheritedObjects {
 public:
  struct Object {
    std::uint64_t bytes = 0;   // of all that it represents
    std::uint32_t weight = 0;  // how many those are
    std::uint32_t row = 0;
  };

  // In the child, while the parent's session is still open: keeps the objects whose holder has a
  // row. `holders`: of each row, in that session; 0: none. `own_holders`: of each of the rows by
  // which the parent keeps what it had inherited itself. Costs some 10 ns for each block on record
  // in the session.
  void copy(InHook, std::span<const std::uint32_t> holders,
            std::span<const std::uint32_t> own_holders) noexcept;
  void clear(InHook) noexcept;

  // The object at `address` is freed. False: there is none, or not any more.
  bool take(InHook, std::uint64_t address, Object& taken) noexcept;

 private:
  struct Entry {
    std::uint64_t address;  // 0: none
    std::uint32_t weight;   // 0: taken
    std::uint16_t bytes;
    std::uint8_t row;
  };

  static std::uint32_t place_of(std::uint64_t address, std::uint32_t capacity) noexcept {
    return static_cast<std::uint32_t>(address * 0x9e3779b97f4a7c15ULL >> 40) & (capacity - 1);
  }
  bool insert(const Entry& entry) noexcept;

  Entry* entries_ = nullptr;
  std::uint32_t capacity_ = 0;  // a power of two; a quarter of it stays empty
  std::uint32_t count_ = 0;
};

}  // namespace oomrec::recorder
