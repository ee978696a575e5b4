#include "common/limits/process_files.h"

#include <fcntl.h>

#include <cstdint>
#include <cstring>

#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"

namespace oomrec::limit {
namespace {

using system::Text;

// struct linux_dirent64
struct DirectoryEntry {
  std::uint64_t inode;
  std::int64_t offset;
  unsigned short bytes;
  unsigned char type;
  char name[1];
};

// The files of a process, less the name. 0: of the calling one.
void begin_path(Text& path, int process) noexcept {
  path << system::g_roots.proc << '/';
  process == 0 ? path << "self" : path.number(static_cast<std::uint64_t>(process));
}

// A thread that is not the main one; 0: none. The first of several will do: threads that have ended
// are not listed, except the main one.
[[gnu::noinline]] int other_thread(int process) noexcept {
  char path[kProcessPathBytes];
  Text name(path);
  begin_path(name, process);
  name << "/task";
  const system::File tasks = system::File::open(path, O_RDONLY | O_DIRECTORY);
  alignas(8) char entries[512];
  for (long bytes; tasks.is_open() && (bytes = system::call(SYS_getdents64, tasks.descriptor(),
                                                            entries, sizeof entries)) > 0;) {
    for (long at = 0; at < bytes;) {
      DirectoryEntry entry;
      std::memcpy(&entry, entries + at, offsetof(DirectoryEntry, name));
      const char* const thread = entries + at + offsetof(DirectoryEntry, name);
      const auto number = static_cast<int>(system::number_in(thread));
      if (number != 0 && number != process) return number;
      at += entry.bytes;
    }
  }
  return 0;
}

[[gnu::noinline]] long read_of_other_thread(int process, const char* file, char* buffer,
                                            std::size_t capacity) noexcept {
  const int thread = process == 0 ? system::thread_id() : other_thread(process);
  if (thread == 0) return 0;
  char path[kProcessPathBytes];
  Text name(path);
  begin_path(name, process);
  name << "/task/";
  name.number(static_cast<std::uint64_t>(thread)) << file;
  return system::read_file(path, buffer, capacity);
}

[[gnu::noinline]] long read_of_main_thread(int process, const char* file, char* buffer,
                                           std::size_t capacity) noexcept {
  char path[kProcessPathBytes];
  Text name(path);
  begin_path(name, process);
  name << file;
  return system::read_file(path, buffer, capacity);
}

std::string_view text_of(const char* buffer, long bytes) noexcept {
  return {buffer, bytes > 0 ? static_cast<std::size_t>(bytes) : 0};
}

}  // namespace

long read_process_file(int process, const char* file, char* buffer, std::size_t capacity,
                       bool (*is_valid)(std::string_view)) noexcept {
  long bytes = read_of_main_thread(process, file, buffer, capacity);
  if (is_valid(text_of(buffer, bytes))) return bytes;
  bytes = read_of_other_thread(process, file, buffer, capacity);
  if (is_valid(text_of(buffer, bytes))) return bytes;
  return read_of_main_thread(process, file, buffer, capacity);
}

}  // namespace oomrec::limit
