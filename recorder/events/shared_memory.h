// Records whether a shared mapping of a file in memory (tmpfs, /dev/shm) exceeded the free space.
//
// The kernel creates such a mapping even if there is too little space, and sends SIGBUS when the
// program writes to a page that cannot be allocated. No hook runs then. So the free space is read
// when the mapping is created: about 2 µs for a mapping that counts, nothing for others.
#pragma once

#include "common/system/hook_scope.h"
#include "recorder/events/mappings.h"

namespace oomrec::recorder {

// The mapping of a file that `descriptor` is open for. If the file is in memory, records whether it
// fits.
void on_shared_file(InHook, const Mapping&, int descriptor, std::uint64_t offset) noexcept;

// A range was unmapped. If the recorded mapping begins in it, its address is forgotten.
void release_shared_file(std::uint64_t address, std::uint64_t bytes) noexcept;

// Another thread of the parent may have been recording one.
void reset_shared_memory_after_fork(InHook) noexcept;

}  // namespace oomrec::recorder
