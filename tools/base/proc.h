// Reads /proc: its lists of processes and threads, and what it tells about one of them.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace oomrec::tools {

// A file of a process or thread, such as "stat"; empty: it may not be read. `proc`: where procfs is
// mounted.
std::string process_file(pid_t pid, std::string_view name, std::string_view proc = "/proc");

// A field of its "status"; empty: there is none.
std::string status_field(pid_t pid, std::string_view name, std::string_view proc = "/proc");

// The same of a field in kB, "VmRSS". 0: there is none.
std::uint64_t status_bytes(pid_t pid, std::string_view name, std::string_view proc = "/proc");

// The kernel's name of the process, at most 15 bytes; empty: it has ended.
std::string name_of_process(pid_t pid);

// The processes in /proc, or the threads in /proc/PID/task. Unsorted; zombies, too.
std::vector<pid_t> ids_in(const std::filesystem::path& directory);

}  // namespace oomrec::tools
