// The modules (executable, libraries, vdso) whose code was seen on a stack.
//
// A module has a *slot* here, private to the process, and an id in the session. A slot means one
// module for ever: when the library is gone the slot is dead, and it lives again only for the very
// same library (address and build-id). So whoever holds a slot never reads another module's
// figures, and look-ups need no lock. Found by `_dl_find_object` (glibc ≥ 2.35: no lock, no
// allocation), else from /proc/self/maps; never by dl_iterate_phdr, whose lock the program may
// hold.
#pragma once

#include <elf.h>

#include <atomic>
#include <cstdint>

#include "common/system/hook_scope.h"
#include "recorder/stack/stack.h"

namespace oomrec::stack {

// Addresses [start, end).
struct AddressRange {
  std::uint64_t start = 0;
  std::uint64_t end = 0;

  bool holds(std::uint64_t address, std::uint64_t bytes = 1) const noexcept {
    return address >= start && address < end && bytes <= end - address;
  }
};

struct KnownModule {
  AddressRange mapped;
  std::uint64_t base;          // load bias
  const Elf64_Phdr* segments;  // in the module's own memory
  std::uint32_t segment_count;
  std::uint32_t build_id_bytes;
  const unsigned char* build_id_at;  // in the module's own memory
  unsigned char build_id[32];
  AddressRange eh_frame_header;  // empty: none
  std::atomic<bool> alive;
  std::atomic<std::uint32_t> id;  // in the session; 0: not entered yet

  // The segment that holds `address`, by its flags (PF_R, PF_X); empty: none.
  AddressRange segment_at(std::uint64_t address, std::uint32_t flags) const noexcept;
};

inline constexpr std::uint32_t kModuleSlots = 4096;  // slot 0: no module

void start_modules(InHook) noexcept;

// The slot of the module that holds `pc`; 0: none, or no room.
std::uint32_t module_slot_at(InHook, std::uint64_t pc) noexcept;

std::uint32_t module_slots() noexcept;  // slots in use, slot 0 and dead ones included

const KnownModule& known_module(std::uint32_t slot) noexcept;

// Whether asking for an address without a module is dear (a look at /proc/self/maps).
bool module_search_is_slow() noexcept;

// What module_at() says, for all addresses of the module; empty where it should be asked again.
CodeRange code_range_at(InHook, std::uint64_t pc) noexcept;

// Whether every module is still the one it was; those that are not are dead from here on.
bool modules_still_hold(InHook) noexcept;

// The same for one module, the next at each call.
bool next_module_still_holds(InHook) noexcept;

// After a fork: ids belong to the parent's session.
void forget_module_ids(InHook) noexcept;

}  // namespace oomrec::stack
