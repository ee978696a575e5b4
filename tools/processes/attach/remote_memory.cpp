#include "tools/processes/attach/remote_memory.h"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/uio.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <fstream>

#include "tools/base/descriptor.h"

namespace oomrec::tools::processes {

std::size_t RemoteMemory::read_some(std::uint64_t address, void* to, std::size_t bytes) const {
  const iovec own{to, bytes};
  const iovec other{reinterpret_cast<void*>(address), bytes};
  const ssize_t got = process_vm_readv(pid_, &own, 1, &other, 1, 0);
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

std::string RemoteMemory::text(std::uint64_t address) const {
  std::array<char, 512> buffer{};
  if (address == 0) return {};
  buffer[std::min(read_some(address, buffer.data(), buffer.size()), buffer.size() - 1)] = '\0';
  return buffer.data();
}

bool RemoteMemory::write(std::uint64_t address, const void* from, std::size_t bytes) const {
  const Descriptor file = open(fmt::format("/proc/{}/mem", pid_).c_str(), O_WRONLY | O_CLOEXEC);
  return file >= 0 &&
         pwrite(file, from, bytes, static_cast<off_t>(address)) == static_cast<ssize_t>(bytes);
}

std::vector<RemoteMapping> RemoteMemory::mappings() const {
  std::vector<RemoteMapping> all;
  std::ifstream file{fmt::format("/proc/{}/maps", pid_)};
  for (std::string line; std::getline(file, line);) {
    RemoteMapping one;
    std::array<char, 5> rights{};
    int path = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx %4s %lx %*s %*s %n", &one.start, &one.end, rights.data(),
                    &one.offset, &path) < 4)
      continue;
    one.readable = rights[0] == 'r';
    one.writable = rights[1] == 'w';
    one.executable = rights[2] == 'x';
    one.shared = rights[3] == 's';
    if (path != 0) one.path = line.substr(static_cast<std::size_t>(path));
    all.push_back(std::move(one));
  }
  return all;
}

std::optional<std::uint64_t> RemoteMemory::auxiliary_value(std::uint64_t type) const {
  std::ifstream file{fmt::format("/proc/{}/auxv", pid_), std::ios::binary};
  Elf64_auxv_t entry;
  while (file.read(reinterpret_cast<char*>(&entry), sizeof entry))
    if (entry.a_type == type) return entry.a_un.a_val;
  return std::nullopt;
}

}  // namespace oomrec::tools::processes
