#pragma once

#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstdint>
#include <string_view>
#include <utility>

namespace oomrec::machine {

inline constexpr std::uint32_t kAuditArchitecture = AUDIT_ARCH_X86_64;

// By which the C library reaches a path.
inline constexpr std::pair<std::uint32_t, std::string_view> kPathCalls[] = {
    {SYS_readlink, "readlink"}, {SYS_mkdir, "mkdir"}, {SYS_unlink, "unlink"}};

inline constexpr long kEpollWaits[] = {SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2};

// Above which a process has no memory of its own.
inline constexpr std::uint64_t kHighestAddress = std::uint64_t{0x7fff} << 32;

}  // namespace oomrec::machine
