// Reads files of /proc that describe a process' memory, even if its main thread has ended while
// others run: /proc/PID then shows no memory and no cgroup, /proc/PID/task/TID of a live one does.
#pragma once

#include <cstddef>
#include <string_view>

namespace oomrec::limit {

// Of a file of a process below a root of /proc, which tests replace.
inline constexpr std::size_t kProcessPathBytes = 320;

// Reads `file`, such as "/statm", of the main thread, or if `is_valid` rejects its text, of another
// thread. `process`: a pid; 0: the calling process. Returns the bytes read, NUL-terminated, or ≤ 0.
long read_process_file(int process, const char* file, char* buffer, std::size_t capacity,
                       bool (*is_valid)(std::string_view)) noexcept;

}  // namespace oomrec::limit
