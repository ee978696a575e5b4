#pragma once

#include <elf.h>
#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstdint>
#include <string_view>
#include <utility>

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

inline constexpr std::uint32_t kAuditArchitecture = AUDIT_ARCH_AARCH64;

// By which the C library reaches a path.
inline constexpr std::pair<std::uint32_t, std::string_view> kPathCalls[] = {
    {SYS_readlinkat, "readlinkat"}, {SYS_mkdirat, "mkdirat"}, {SYS_unlinkat, "unlinkat"}};

inline constexpr long kEpollWaits[] = {SYS_epoll_pwait, SYS_epoll_pwait2};

// Above which a process has no memory of its own: addresses of 48 bits.
inline constexpr std::uint64_t kHighestAddress = std::uint64_t{0xffff} << 32;

}  // namespace oomrec::machine
