// Shared mappings of files in memory (tmpfs: /dev/shm), and whether there was room for them.
//
// Such a mapping is made whether there is room or not; the program learns by SIGBUS, when it writes
// to a page for which there is none. Nobody is asked then, so what is needed and what is free is
// looked at where the mapping is made: some 2 µs for a mapping that counts, nothing for others.
#pragma once

#include "common/system/hook_scope.h"
#include "recorder/events/mappings.h"

namespace oomrec::recorder {

// The same of a file, which `descriptor` is open for: where it is one in memory, whether there is
// room for it.
void on_shared_file(InHook, const Mapping&, int descriptor, std::uint64_t offset) noexcept;

// An active session's: unmapped, at least from its beginning.
void release_shared_file(std::uint64_t address, std::uint64_t bytes) noexcept;

// In a fork's child, whose parent may have been at it.
void reset_shared_memory_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
