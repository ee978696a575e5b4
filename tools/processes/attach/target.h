// Whether a running process can be attached to, and if not, why and what helps.
#pragma once

#include <sys/types.h>

#include <string>

#include "tools/processes/attach/remote_memory.h"

namespace oomrec::tools::processes {

// Throws Error with bad_input: it does not exist, has ended, is stopped, is traced, is this
// command, or is a program that cannot be recorded.
void require_attachable(pid_t pid);

// Which program it runs now: another text after each exec, by the bytes that the kernel gives each.
// Empty: it may not be read.
std::string program_of(pid_t pid);

// What the kernel's refusal of ptrace means here. `error`: its errno.
[[noreturn]] void throw_not_permitted(pid_t pid, int error);

}  // namespace oomrec::tools::processes
