#pragma once

#include <elf.h>
#include <linux/audit.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cstdint>
#include <string_view>
#include <utility>

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

inline constexpr std::uint32_t kAuditArchitecture = AUDIT_ARCH_X86_64;

// By which the C library reaches a path.
inline constexpr std::pair<std::uint32_t, std::string_view> kPathCalls[] = {
    {SYS_readlink, "readlink"}, {SYS_mkdir, "mkdir"}, {SYS_unlink, "unlink"}};

inline constexpr long kEpollWaits[] = {SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2};

// Above which a process has no memory of its own.
inline constexpr std::uint64_t kHighestAddress = std::uint64_t{0x7fff} << 32;

}  // namespace oomrec::machine
