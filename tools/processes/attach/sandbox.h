// Whether the seccomp filters of a process let the recorder work in it. A filter may end a process
// for a system call that it does not expect.
#pragma once

#include <linux/filter.h>
#include <sys/types.h>

#include <cstdint>
#include <span>

namespace oomrec::tools::processes {

// Whether a filter may answer this call with anything but the call itself, or an error. The call's
// arguments are not known: each branch on one is taken both ways. True, too, for a filter
// that is too complex to be followed.
bool may_punish(std::span<const sock_filter> filter, std::uint32_t call);

// Throws Error with bad_input if a filter may harm the process, or cannot be read. A filter that
// this command runs under, too, is that of their container, and not looked at.
void require_harmless_filters(pid_t pid);

}  // namespace oomrec::tools::processes
