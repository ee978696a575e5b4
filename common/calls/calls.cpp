#include "common/calls/calls.h"

#include <errno.h>
#include <sys/syscall.h>
#include <time.h>

#include <cstring>

#include "common/system/files.h"
#include "common/system/syscalls.h"

namespace oomrec::calls {
namespace {

long address_of(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  system::call(SYS_clock_gettime, clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000U +
         static_cast<std::uint64_t>(now.tv_nsec);
}

// The loop shared by write and pwrite64: `one` writes part of what is left.
template <class One>
int write_until_done(const void* data, std::size_t bytes, One&& one) noexcept {
  const char* at = static_cast<const char*>(data);
  while (bytes != 0) {
    const long written = one(at, bytes);
    if (written == -EINTR) continue;
    if (written < 0) return static_cast<int>(written);
    if (written == 0) return -ENOSPC;
    at += written;
    bytes -= static_cast<std::size_t>(written);
  }
  return 0;
}

}  // namespace

#ifdef OOMREC_FAIL_INJECTION
constinit Injection g_injection;

long call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  Injection& plan = g_injection;
  // A failed close has closed the descriptor anyway, and an exit cannot fail.
  const bool counts = plan.only < 0 ? number != SYS_close : number == plan.only;
  if (plan.fail_at != 0 && counts) {
    ++plan.calls;
    if (plan.calls == plan.fail_at || (plan.from_then_on && plan.calls > plan.fail_at)) {
      ++plan.failed;
      if (plan.hang_seconds == 0) return -plan.error;
      const timespec time{plan.hang_seconds, 0};
      system::call(SYS_nanosleep, &time, nullptr);
    }
  }
  return system::call(number, a, b, c, d, e, f);
}
#else
long call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  return system::call(number, a, b, c, d, e, f);
}
#endif

int open_at(int directory, const char* path, int flags, unsigned mode) noexcept {
  const long fd = call(SYS_openat, directory, address_of(path), flags | O_CLOEXEC, mode);
  if (fd < 0 || fd > 2) return static_cast<int>(fd);
  const long higher = system::duplicated(call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3));
  close(static_cast<int>(fd));
  return static_cast<int>(higher);
}

void close(int fd) noexcept { call(SYS_close, fd); }

int write_all(int fd, const void* data, std::size_t bytes) noexcept {
  return write_until_done(data, bytes, [fd](const char* at, std::size_t left) {
    return call(SYS_write, fd, address_of(at), static_cast<long>(left));
  });
}

int write_all_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset) noexcept {
  const char* const begin = static_cast<const char*>(data);
  return write_until_done(data, bytes, [&](const char* at, std::size_t left) {
    return call(SYS_pwrite64, fd, address_of(at), static_cast<long>(left),
                static_cast<long>(offset) + (at - begin));
  });
}

long read_file(int directory, const char* path, char* buffer, std::size_t capacity) noexcept {
  const int fd = open_at(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (fd < 0) return fd;
  std::size_t used = 0;
  long result = 0;
  while (used < capacity) {
    result = call(SYS_read, fd, address_of(buffer + used), static_cast<long>(capacity - used));
    if (result == -EINTR) continue;
    if (result <= 0) break;
    used += static_cast<std::size_t>(result);
  }
  close(fd);
  return result < 0 ? result : static_cast<long>(used);
}

int make_directory(int directory, const char* path) noexcept {
  return static_cast<int>(call(SYS_mkdirat, directory, address_of(path), 0700));
}

int make_directories(const char* path, char* parent, std::size_t capacity) noexcept {
  int result = make_directory(AT_FDCWD, path);
  if (result != -ENOENT) return result == -EEXIST ? 0 : result;
  const std::size_t bytes = std::strlen(path);
  if (bytes >= capacity) return -ENAMETOOLONG;
  for (std::size_t end = 1; end <= bytes; ++end) {
    if (path[end] != '/' && path[end] != '\0') continue;
    std::memcpy(parent, path, end);
    parent[end] = '\0';
    result = make_directory(AT_FDCWD, parent);
    if (result != 0 && result != -EEXIST) return result;
  }
  return 0;
}

int rename_at(int directory, const char* from, const char* to) noexcept {
  return static_cast<int>(
      call(SYS_renameat, directory, address_of(from), directory, address_of(to)));
}

int unlink_at(int directory, const char* path, int flags) noexcept {
  return static_cast<int>(call(SYS_unlinkat, directory, address_of(path), flags));
}

int stat_at(int directory, const char* path, struct stat& out) noexcept {
  return static_cast<int>(
      call(SYS_newfstatat, directory, address_of(path), address_of(&out), AT_SYMLINK_NOFOLLOW));
}

int sync(int fd) noexcept {
  const long result = call(SYS_fsync, fd);
  return result == -EINVAL || result == -ENOSYS ? 0 : static_cast<int>(result);
}

void drop_cache(int fd) noexcept {
  call(SYS_fdatasync, fd);
  call(SYS_fadvise64, fd, 0, 0, POSIX_FADV_DONTNEED);
}

std::uint64_t realtime_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
std::uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }

long get_entries(int directory, char* buffer, std::size_t capacity) noexcept {
  return call(SYS_getdents64, directory, address_of(buffer), static_cast<long>(capacity));
}

}  // namespace oomrec::calls
