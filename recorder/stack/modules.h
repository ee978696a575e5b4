// The modules (executable, libraries, vdso) whose code has appeared on a stack.
//
// A module has a *slot* here, private to the process, and an id in the session. When the library is
// unloaded its slot dies, and revives only for the same one (address, path and build-id). A round
// of forgetting (recorder/forget/forget.h) frees dead slots, for other modules, once no thread is
// left in an event from before the round. So within an event (UsesNodes) a slot never becomes
// another module's, and lookups need no lock. Modules are found by `_dl_find_object` (glibc ≥ 2.35:
// no lock, no allocation), else in /proc/self/maps; never by dl_iterate_phdr, whose lock the
// program may hold.
#pragma once

#include <elf.h>

#include <atomic>
#include <cstdint>

#include "common/session/view.h"
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

struct ModuleImage {
  AddressRange mapped;
  std::uint64_t base;          // load bias
  const Elf64_Phdr* segments;  // in the module's own memory
  std::uint32_t segment_count;
  std::uint32_t build_id_bytes;
  const unsigned char* build_id_at;  // in the module's own memory
  unsigned char build_id[32];
  AddressRange eh_frame_header;  // empty: none
  AddressRange stack_switch;     // code whose caller's frame may be gone: modules.cpp
  std::uint64_t path_hash;       // 0: unknown

  // The segment with these flags (PF_R, PF_X) that contains `address`; empty: none.
  AddressRange segment_at(std::uint64_t address, std::uint32_t flags) const noexcept;
};
struct LoadedModule : ModuleImage {
  std::atomic<std::uint32_t> id;  // in the session; 0: not recorded yet
};

inline constexpr std::uint32_t kModuleSlots = 4096;  // slot 0: no module

void start_modules(InHook) noexcept;

// The slot of the module that contains `pc`; 0: none, or no free slot.
std::uint32_t module_slot_at(InHook, std::uint64_t pc) noexcept;

// The same among modules that are known already: no search.
std::uint32_t known_module_slot_at(std::uint64_t pc) noexcept;

std::uint32_t module_slots() noexcept;  // slots in use, slot 0 and dead ones included

const LoadedModule& loaded_module(std::uint32_t slot) noexcept;
bool is_module_loaded(std::uint32_t slot) noexcept;  // as far as is known

// Whether searching for an address outside of any module is slow (reads /proc/self/maps).
bool module_search_is_slow() noexcept;

// module_at()'s answer for all addresses of the module; empty: do not cache.
CodeRange code_range_at(InHook, std::uint64_t pc) noexcept;

// The slot of the module with this id in the session; 0: none.
std::uint32_t module_slot_of(std::uint32_t id) noexcept;

// A frame at this offset of the module in `slot` as a word for the session; slot 0: of an address
// in no module.
std::uint64_t native_frame_in(InHook, std::uint32_t slot, std::uint64_t offset,
                              session::NativeFlags) noexcept;

// Whether every module is still loaded; marks those that are not as dead.
bool modules_still_loaded(InHook) noexcept;

// The same for one module, the next at each call.
bool next_module_still_loaded(InHook) noexcept;

// Before a round raises the era: the modules that are dead now may be forgotten in it. False: there
// are few, and memory is not short.
bool begin_forgetting_modules(InHook, bool is_short) noexcept;

// When nobody is in an event from before the era, and all frames have claimed their modules
// (module_entries.h): frees what it can of some slots, and then of some entries of the session.
// True: those were the last.
bool forget_module_slots(InHook, std::uint32_t& at, std::uint32_t most,
                         std::uint32_t round) noexcept;
bool forget_module_entries(InHook, std::uint32_t& at, std::uint32_t most,
                           std::uint32_t round) noexcept;

// After a fork: the ids belong to the parent's session.
void reset_module_ids(InHook) noexcept;

}  // namespace oomrec::stack
