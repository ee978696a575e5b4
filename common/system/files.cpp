#include "common/system/files.h"

#include <fcntl.h>
#include <time.h>

#include <atomic>
#include <cstring>

#include "common/system/syscalls.h"
#include "common/system/text.h"

namespace oomrec::system {

constinit Roots g_roots;

namespace {

long address_of(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

// The loop shared by read and pread64: `one` reads part of what is left.
template <class One>
long read_until_done(void* data, std::size_t bytes, One&& one) noexcept {
  char* const begin = static_cast<char*>(data);
  std::size_t done = 0;
  while (done < bytes) {
    const long result = one(begin + done, bytes - done);
    if (result == -EINTR) continue;
    if (result < 0) return result;
    if (result == 0) break;
    done += static_cast<std::size_t>(result);
  }
  return static_cast<long>(done);
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

int read_by_call(int clock, timespec* now) {
  return static_cast<int>(call(SYS_clock_gettime, clock, now));
}
constinit std::atomic<ReadClock*> g_read_clock{clock_gettime};

std::uint64_t clock_ns(clockid_t clock) noexcept {
  timespec now{};
  g_read_clock.load(std::memory_order_relaxed)(clock, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

#ifdef OOMREC_FAIL_INJECTION
constinit Injection g_injection;

long fallible_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  Injection& plan = g_injection;
  // A failed close has closed the descriptor anyway, and an exit cannot fail.
  const bool counts = plan.only < 0 ? number != SYS_close : number == plan.only;
  if (plan.fail_at != 0 && counts) {
    ++plan.calls;
    if (plan.calls == plan.fail_at || (plan.from_then_on && plan.calls > plan.fail_at)) {
      ++plan.failed;
      if (plan.hang_seconds == 0) return -plan.error;
      const timespec time{plan.hang_seconds, 0};
      call(SYS_nanosleep, &time, nullptr);
    }
  }
  return call(number, a, b, c, d, e, f);
}
#else
long fallible_call(long number, long a, long b, long c, long d, long e, long f) noexcept {
  return call(number, a, b, c, d, e, f);
}
#endif

int open_at(int directory, const char* path, int flags, unsigned mode) noexcept {
  long fd;
  do {
    fd = fallible_call(SYS_openat, directory, address_of(path), flags | O_CLOEXEC, mode);
  } while (fd == -EINTR);
  if (fd < 0 || fd > 2) return static_cast<int>(fd);
  const long higher = duplicated(fallible_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, 3));
  close(static_cast<int>(fd));
  return static_cast<int>(higher);
}

void close(int fd) noexcept { fallible_call(SYS_close, fd); }

int write_all(int fd, const void* data, std::size_t bytes) noexcept {
  return write_until_done(data, bytes, [fd](const char* at, std::size_t left) {
    return fallible_call(SYS_write, fd, address_of(at), static_cast<long>(left));
  });
}

int write_all_at(int fd, const void* data, std::size_t bytes, std::uint64_t offset) noexcept {
  const char* const begin = static_cast<const char*>(data);
  return write_until_done(data, bytes, [&](const char* at, std::size_t left) {
    return fallible_call(SYS_pwrite64, fd, address_of(at), static_cast<long>(left),
                         static_cast<long>(offset) + (at - begin));
  });
}

long read_file_at(int directory, const char* path, char* buffer, std::size_t capacity) noexcept {
  const File file = File::open_at(directory, path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  return file.is_open() ? file.read(buffer, capacity) : -file.error();
}

int make_directory(int directory, const char* path) noexcept {
  return static_cast<int>(fallible_call(SYS_mkdirat, directory, address_of(path), 0700));
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
      fallible_call(SYS_renameat, directory, address_of(from), directory, address_of(to)));
}

int unlink_at(int directory, const char* path, int flags) noexcept {
  return static_cast<int>(fallible_call(SYS_unlinkat, directory, address_of(path), flags));
}

int stat_at(int directory, const char* path, struct stat& out) noexcept {
  return static_cast<int>(fallible_call(SYS_newfstatat, directory, address_of(path),
                                        address_of(&out), AT_SYMLINK_NOFOLLOW));
}

int sync(int fd) noexcept {
  const long result = fallible_call(SYS_fsync, fd);
  return result == -EINVAL || result == -ENOSYS ? 0 : static_cast<int>(result);
}

void drop_cache(int fd) noexcept {
  fallible_call(SYS_fdatasync, fd);
  fallible_call(SYS_fadvise64, fd, 0, 0, POSIX_FADV_DONTNEED);
}

File File::open_at(int directory, const char* path, int flags, unsigned mode) noexcept {
  return File{system::open_at(directory, path, flags, mode)};
}

File File::open(const char* path, int flags, unsigned mode) noexcept {
  return open_at(AT_FDCWD, path, flags, mode);
}

long File::read(void* data, std::size_t capacity) const noexcept {
  return read_until_done(data, capacity, [this](char* to, std::size_t left) {
    return fallible_call(SYS_read, descriptor_, address_of(to), static_cast<long>(left));
  });
}

long File::read_at(std::uint64_t offset, void* data, std::size_t capacity) const noexcept {
  const char* const begin = static_cast<const char*>(data);
  return read_until_done(data, capacity, [&](char* to, std::size_t left) {
    return fallible_call(SYS_pread64, descriptor_, address_of(to), static_cast<long>(left),
                         static_cast<long>(offset) + (to - begin));
  });
}

int File::write(const void* data, std::size_t bytes) const noexcept {
  return write_all(descriptor_, data, bytes);
}

int File::release() noexcept {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  return descriptor;
}

void File::close() noexcept {
  if (descriptor_ >= 0) system::close(descriptor_);
  descriptor_ = -1;
}

long read_file(const char* path, char* buffer, std::size_t capacity) noexcept {
  buffer[0] = '\0';
  const File file = File::open(path, O_RDONLY);
  if (!file.is_open()) return -file.error();
  const long bytes = file.read(buffer, capacity - 1);
  buffer[bytes < 0 ? 0 : bytes] = '\0';
  return bytes;
}

void read_roots(const char* const* environment) noexcept {
  bool cgroup_named = false;
  struct Row {
    std::string_view name;
    char (&value)[256];
  };
  const Row rows[] = {{"OOMREC_PROC_ROOT=", g_roots.proc},
                      {"OOMREC_SYS_ROOT=", g_roots.sys},
                      {"OOMREC_CGROUP_ROOT=", g_roots.cgroup},
                      {"TMPDIR=", g_roots.temporary},
                      {"XDG_RUNTIME_DIR=", g_roots.runtime}};
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    for (const Row& row : rows) {
      const std::string_view entry{*environment};
      if (entry.substr(0, row.name.size()) != row.name) continue;
      const std::string_view value = entry.substr(row.name.size());
      if (value.empty() || value[0] != '/' || value.size() >= sizeof(row.value)) continue;
      Text{row.value} << value;
      cgroup_named |= &row.value == &g_roots.cgroup;
    }
  }
  if (!cgroup_named) Text{g_roots.cgroup} << g_roots.sys << "/fs/cgroup";
}

int process_id() noexcept { return static_cast<int>(call(SYS_getpid)); }
int thread_id() noexcept { return static_cast<int>(call(SYS_gettid)); }

void use_clock(ReadClock* of_kernel) noexcept {
  g_read_clock.store(of_kernel != nullptr ? of_kernel : read_by_call, std::memory_order_relaxed);
}

std::uint64_t coarse_ns() noexcept { return clock_ns(CLOCK_MONOTONIC_COARSE); }
std::uint64_t monotonic_ns() noexcept { return clock_ns(CLOCK_MONOTONIC); }
std::uint64_t realtime_ns() noexcept { return clock_ns(CLOCK_REALTIME); }
std::uint64_t processor_ns() noexcept { return clock_ns(CLOCK_THREAD_CPUTIME_ID); }
std::uint64_t processor_ns_of_process() noexcept { return clock_ns(CLOCK_PROCESS_CPUTIME_ID); }

void random_bytes(void* data, std::size_t bytes) noexcept {
  constexpr unsigned kNonBlocking = 1;  // GRND_NONBLOCK: early during boot there may be none yet
  if (call(SYS_getrandom, data, bytes, kNonBlocking) != static_cast<long>(bytes)) {
    std::memset(data, 0, bytes);
  }
}

std::uint64_t start_ticks(int pid) noexcept {
  char path[320];
  char buffer[1024];
  long bytes = 0;
  // /proc may show another pid namespace, in which our number is another process'.
  if (pid == process_id()) {
    Text{path} << g_roots.proc << "/self/stat";
    bytes = read_file(path, buffer, sizeof(buffer));
  }
  if (bytes <= 0) {
    Text{path}.operator<<(g_roots.proc).operator<<('/').number(static_cast<std::uint64_t>(pid))
        << "/stat";
    bytes = read_file(path, buffer, sizeof(buffer));
  }
  if (bytes <= 0) return 0;
  const std::string_view text{buffer, static_cast<std::size_t>(bytes)};
  const std::string_view state = stat_field(text, 3);
  // A program whose first thread has ended is a zombie with other threads.
  const bool is_zombie = state == "Z" && number_in(stat_field(text, 20)) <= 1;
  return state == "X" || is_zombie ? 0 : number_in(stat_field(text, 22));
}

File open_file_of(int pid, const char* name) noexcept {
  char path[sizeof g_roots.proc + 48];
  Text text{path};
  text << g_roots.proc << '/';
  pid == 0 ? text << "self" : text.number(static_cast<std::uint64_t>(pid));
  text << name;
  return File::open(path, O_RDONLY);
}

int thread_with_memory(int pid) noexcept {
  const auto shows_memory = [](int task) noexcept {
    char first = '0';
    return open_file_of(task, "/statm").read(&first, 1) == 1 && first != '0';
  };
  if (shows_memory(pid)) return pid;
  const File threads = open_file_of(pid, "/task");
  if (!threads.is_open()) return pid;
  int found = pid;
  alignas(8) char entries[512];
  for_each_entry(threads.descriptor(), entries, sizeof entries, [&](const char* name) noexcept {
    const auto thread = static_cast<int>(number_in(name));
    if (found == pid && shows_memory(thread)) found = thread;
  });
  return found;
}

std::uint32_t pid_namespace() noexcept {
  constexpr std::string_view kPrefix = "pid:[";
  char path[320];
  char target[64];
  Text{path} << g_roots.proc << "/self";
  long bytes = call(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target));
  const auto text = [&] { return std::string_view{target, static_cast<std::size_t>(bytes)}; };
  if (bytes <= 0 || number_in(text()) != static_cast<std::uint64_t>(process_id())) return 0;
  Text{path} << g_roots.proc << "/self/ns/pid";
  bytes = call(SYS_readlinkat, AT_FDCWD, path, target, sizeof(target));
  if (bytes <= 0 || !text().starts_with(kPrefix)) return 0;
  return static_cast<std::uint32_t>(number_in(text().substr(kPrefix.size())));
}

bool boot_id(std::uint8_t (&id)[16]) noexcept {
  std::memset(id, 0, sizeof(id));
  char path[320];
  Text{path} << g_roots.proc << "/sys/kernel/random/boot_id";
  char text[64];
  if (read_file(path, text, sizeof(text)) < 36) return false;
  unsigned nibbles = 0;
  for (const char* at = text; *at != '\0' && nibbles < 32; ++at) {
    const bool digit = *at >= '0' && *at <= '9';
    if (!digit && !(*at >= 'a' && *at <= 'f')) continue;
    const int value = digit ? *at - '0' : *at - 'a' + 10;
    id[nibbles / 2] = static_cast<std::uint8_t>(id[nibbles / 2] << 4 | value);
    ++nibbles;
  }
  return nibbles == 32;
}

bool is_of_other_boot(const std::uint8_t (&recorded)[16]) noexcept {
  constexpr std::uint8_t kHidden[16] = {};
  std::uint8_t id[16];
  return boot_id(id) && std::memcmp(recorded, kHidden, sizeof recorded) != 0 &&
         std::memcmp(recorded, id, sizeof recorded) != 0;
}

}  // namespace oomrec::system
