#pragma once

#include <elf.h>
#include <sys/mman.h>

#define OOMREC_MACHINE "x86-64"
#define OOMREC_MULTIARCH "x86_64-linux-gnu"  // Debian's folder of libraries

namespace oomrec::machine {

inline constexpr unsigned kElfMachine = EM_X86_64;

// Relocations that hold a function's address: called through a linkage table, read from a table of
// addresses, or kept in data.
inline constexpr unsigned kCallSlot = R_X86_64_JUMP_SLOT, kAddressSlot = R_X86_64_GLOB_DAT,
                          kDataWord = R_X86_64_64;

// Of mmap: below 2 GiB, which a program tries first.
inline constexpr int kLowMapping = MAP_32BIT;

}  // namespace oomrec::machine
