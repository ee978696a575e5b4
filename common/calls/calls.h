// The system calls of the bundle writer, based on system::call. They never touch errno (the writer
// may share the failing thread's TLS) and never enter a hook.
//
// Each function returns the kernel's result: a value, or minus an errno. A build with
// OOMREC_FAIL_INJECTION can make the n-th call fail (see Injection).
#pragma once

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace oomrec::calls {

long call(long number, long a = 0, long b = 0, long c = 0, long d = 0, long e = 0,
          long f = 0) noexcept;

// Close-on-exec, and never 0, 1 or 2: those belong to the program even while they are closed.
int open_at(int directory, const char* path, int flags, unsigned mode = 0) noexcept;
void close(int fd) noexcept;

// Writes everything: 0, or minus an errno. A write without progress is ENOSPC.
int write_all(int fd, const void* data, std::size_t bytes) noexcept;
int write_all_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset) noexcept;

// Reads up to `capacity` bytes or the end. Returns the bytes read, or minus an errno.
long read_file(int directory, const char* path, char* buffer, std::size_t capacity) noexcept;

int make_directory(int directory, const char* path) noexcept;  // 0700

// Creates a directory and its parents; 0 if it exists. `parent`: a buffer for a path.
int make_directories(const char* path, char* parent, std::size_t capacity) noexcept;
int rename_at(int directory, const char* from, const char* to) noexcept;
int unlink_at(int directory, const char* path, int flags) noexcept;
int stat_at(int directory, const char* path, struct stat& out) noexcept;  // does not follow links
// 0 also for file systems that do not support fsync.
int sync(int fd) noexcept;
void drop_cache(int fd) noexcept;  // flushes the file and drops it from the page cache
std::uint64_t realtime_ns() noexcept;
std::uint64_t monotonic_ns() noexcept;

// Calls visit(name) for each entry of the directory except "." and "..". `buffer` receives the
// kernel's entries and is used until the end. 0 or minus an errno.
template <class Visit>
int for_each_entry(int directory, char* buffer, std::size_t capacity, Visit&& visit) noexcept;

#ifdef OOMREC_FAIL_INJECTION
// The `fail_at`-th call from now (1: the next) fails with `error`; with `from_then_on` so do all
// later ones. `failed` counts them. The number of calls for a bundle depends on the machine's other
// processes; `only` selects one system call by its number.
struct Injection {
  std::uint64_t fail_at = 0;
  long only = -1;
  int error = 5;  // EIO
  bool from_then_on = false;
  unsigned hang_seconds = 0;  // instead of failing, the call returns after this time
  std::uint64_t calls = 0;
  std::uint64_t failed = 0;
};
extern constinit Injection g_injection;
#endif

// --- Implementation -----------------------------------------------------------------------------

long get_entries(int directory, char* buffer, std::size_t capacity) noexcept;

template <class Visit>
int for_each_entry(int directory, char* buffer, std::size_t capacity, Visit&& visit) noexcept {
  for (;;) {
    const long bytes = get_entries(directory, buffer, capacity);
    if (bytes <= 0) return static_cast<int>(bytes);
    for (long at = 0; at < bytes;) {
      const auto* const entry = reinterpret_cast<const struct dirent64*>(buffer + at);
      const std::string_view name{entry->d_name};
      if (name != "." && name != "..") visit(entry->d_name);
      at += entry->d_reclen;
    }
  }
}

}  // namespace oomrec::calls
