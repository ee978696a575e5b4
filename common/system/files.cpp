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

long until_done(long number, int descriptor, std::byte* data, std::size_t bytes,
                std::uint64_t* offset) noexcept {
  std::size_t done = 0;
  while (done < bytes) {
    const long result = offset == nullptr
                            ? call(number, descriptor, data + done, bytes - done)
                            : call(number, descriptor, data + done, bytes - done, *offset + done);
    if (result == -EINTR) continue;
    if (result < 0) return result;
    if (result == 0) break;
    done += static_cast<std::size_t>(result);
  }
  return static_cast<long>(done);
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

File File::open_at(int directory, const char* path, int flags, unsigned mode) noexcept {
  long descriptor;
  do {
    descriptor = call(SYS_openat, directory, path, flags | O_CLOEXEC, mode);
  } while (descriptor == -EINTR);
  if (descriptor >= 0 && descriptor <= 2) {
    const long higher = duplicated(call(SYS_fcntl, descriptor, F_DUPFD_CLOEXEC, 3));
    call(SYS_close, descriptor);
    descriptor = higher;
  }
  return File{static_cast<int>(descriptor)};
}

File File::open(const char* path, int flags, unsigned mode) noexcept {
  return open_at(AT_FDCWD, path, flags, mode);
}

long File::read(void* data, std::size_t capacity) const noexcept {
  return until_done(SYS_read, descriptor_, static_cast<std::byte*>(data), capacity, nullptr);
}

long File::read_at(std::uint64_t offset, void* data, std::size_t capacity) const noexcept {
  return until_done(SYS_pread64, descriptor_, static_cast<std::byte*>(data), capacity, &offset);
}

int File::write(const void* data, std::size_t bytes) const noexcept {
  auto* const from = static_cast<std::byte*>(const_cast<void*>(data));
  const long done = until_done(SYS_write, descriptor_, from, bytes, nullptr);
  if (done < 0) return static_cast<int>(done);
  return static_cast<std::size_t>(done) == bytes ? 0 : -EIO;
}

int File::release() noexcept {
  const int descriptor = descriptor_;
  descriptor_ = -1;
  return descriptor;
}

void File::close() noexcept {
  if (descriptor_ >= 0) call(SYS_close, descriptor_);
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
  // pid (name) state …: the name may hold blanks and parentheses, so count from the last ')'.
  std::string_view text{buffer, static_cast<std::size_t>(bytes)};
  const std::size_t end_of_name = text.rfind(')');
  if (end_of_name == std::string_view::npos || end_of_name + 2 >= text.size()) return 0;
  text.remove_prefix(end_of_name + 2);
  const char state = text[0];
  if (state == 'X') return 0;
  for (int column = 3; column < 22; ++column) {
    // A program whose first thread has ended is a zombie with other threads.
    if (column == 20 && state == 'Z' && number_in(text) <= 1) return 0;
    const std::size_t blank = text.find(' ');
    if (blank == std::string_view::npos) return 0;
    text.remove_prefix(blank + 1);
  }
  return number_in(text);
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
