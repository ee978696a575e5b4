#pragma once

#include <elf.h>

#define OOMREC_MACHINE "aarch64"
#define OOMREC_MULTIARCH "aarch64-linux-gnu"  // Debian's folder of libraries

namespace oomrec::machine {

inline constexpr unsigned kElfMachine = EM_AARCH64;

// Relocations that hold a function's address: called through a linkage table, read from a table of
// addresses, or kept in data.
inline constexpr unsigned kCallSlot = R_AARCH64_JUMP_SLOT, kAddressSlot = R_AARCH64_GLOB_DAT,
                          kDataWord = R_AARCH64_ABS64;

// Of mmap: below 2 GiB; there is no such flag.
inline constexpr int kLowMapping = 0;

}  // namespace oomrec::machine
