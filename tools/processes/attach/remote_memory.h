// The memory of another process: read, written and mapped.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace oomrec::tools::processes {

// A line of /proc/PID/maps.
struct RemoteMapping {
  std::uint64_t start = 0, end = 0, offset = 0;
  bool readable = false, writable = false, executable = false, shared = false;
  std::string path;  // as the process sees it; empty: anonymous
};

class RemoteMemory {
 public:
  explicit RemoteMemory(pid_t pid) : pid_(pid) {}

  pid_t pid() const { return pid_; }

  // Bytes that were read: fewer than asked for at the end of readable memory.
  std::size_t read_some(std::uint64_t address, void* to, std::size_t bytes) const;
  bool read(std::uint64_t address, void* to, std::size_t bytes) const {
    return read_some(address, to, bytes) == bytes;
  }
  template <class T>
  bool read(std::uint64_t address, T& value) const {
    return read(address, &value, sizeof value);
  }
  std::string text(std::uint64_t address) const;

  // Also where the process itself may only read, as a debugger does. False: errno says why.
  bool write(std::uint64_t address, const void* from, std::size_t bytes) const;

  // In order of their addresses; empty: it has ended, or may not be read.
  std::vector<RemoteMapping> mappings() const;

  // An entry (AT_BASE, …) of what the kernel gave the program when it started; nothing: there is
  // none, or it may not be read.
  std::optional<std::uint64_t> auxiliary_value(std::uint64_t type) const;

 private:
  pid_t pid_;
};

}  // namespace oomrec::tools::processes
