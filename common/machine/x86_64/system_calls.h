#pragma once

#include <linux/audit.h>
#include <sys/syscall.h>

#include <cstdint>

namespace oomrec::machine {

inline constexpr std::uint32_t kAuditArchitecture = AUDIT_ARCH_X86_64;

struct NamedCall {
  long number;
  const char* name;
};
// By which the C library reaches a path.
inline constexpr NamedCall kPathCalls[] = {
    {SYS_readlink, "readlink"}, {SYS_mkdir, "mkdir"}, {SYS_unlink, "unlink"}};

inline constexpr long kEpollWaits[] = {SYS_epoll_wait, SYS_epoll_pwait, SYS_epoll_pwait2};

// Above which a process has no memory of its own.
inline constexpr std::uint64_t kHighestAddress = std::uint64_t{0x7fff} << 32;

}  // namespace oomrec::machine
