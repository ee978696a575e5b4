#include "recorder/failures/dump_directory.h"

#include <fcntl.h>
#include <sys/types.h>
#include <sys/utsname.h>

#include <atomic>
#include <cstring>

#include "common/system/mutex.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "common/text/expand.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::g_session;
using session::StringId;

namespace {

constexpr std::size_t kPathBytes = 4096;

// A bundle may be written while the program names another directory: a path stays valid until
// kPaths - 1 others have been named.
constexpr std::uint32_t kPaths = 8;

struct Path {
  char text[kPathBytes];
  StringId string;  // in the session of process `pid`
  pid_t pid;
};

struct Directories {
  char pattern[kPathBytes];  // as the process was started: absolute; % words not expanded
  char expanded[kPathBytes];
  system::Mutex lock;
  Path paths[kPaths];
  std::uint32_t next;                  // the next slot to be replaced
  std::atomic<std::uint32_t> current;  // 1 + its slot; 0: as the process was started
  std::atomic<std::uint64_t> max_dumps, max_total_bytes;
  StringId as_started;
};
constinit Directories g_directories{};

std::uint32_t slot_of(std::string_view directory) noexcept {
  for (std::uint32_t slot = 0; slot < kPaths; ++slot) {
    if (directory == g_directories.paths[slot].text) return slot;
  }
  // Spare the current one: a bundle may be about to be written there.
  std::uint32_t slot = g_directories.next;
  if (slot + 1 == g_directories.current.load(std::memory_order_relaxed)) slot = (slot + 1) % kPaths;
  g_directories.next = (slot + 1) % kPaths;
  Path& path = g_directories.paths[slot];
  std::memcpy(path.text, directory.data(), directory.size());
  path.text[directory.size()] = '\0';
  path.pid = 0;
  return slot;
}

void expand_dump_directory() noexcept {
  utsname host{};
  system::call(SYS_uname, &host);
  char program[1024];
  const long bytes =
      system::call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", program, sizeof(program));
  text::PathWords words;
  words.pid = g_state.pid;
  words.host = host.nodename;
  words.program = {program, bytes < 0 ? 0 : static_cast<std::size_t>(bytes)};
  words.start_realtime_ns = g_session.header().start_realtime_ns;
  if (!text::expand_path(g_directories.pattern, words, g_directories.expanded, kPathBytes)) {
    std::memcpy(g_directories.expanded, g_directories.pattern, kPathBytes);
  }
}

// The path as a string of the current session; 0: there is none yet.
StringId string_of(InHook hook, Path& path) noexcept {
  if (path.pid != g_state.pid) {
    path.string = g_session.add_string(hook, path.text);
    path.pid = path.string != 0 ? g_state.pid : 0;
  }
  return path.string;
}

}  // namespace

void start_dump_directory(const char* directory) noexcept {
  make_absolute(directory, g_directories.pattern);
  std::memcpy(g_directories.expanded, g_directories.pattern, kPathBytes);  // until it is expanded
}

const char* dump_directory() noexcept { return g_directories.expanded; }

bundle::Destination destination() noexcept {
  const std::uint32_t current = g_directories.current.load(std::memory_order_acquire);
  if (current == 0) {
    const Options& options = g_state.options;
    return {dump_directory(), options.max_dumps, options.max_total_mb << 20};
  }
  return {g_directories.paths[current - 1].text,
          g_directories.max_dumps.load(std::memory_order_relaxed),
          g_directories.max_total_bytes.load(std::memory_order_relaxed)};
}

bool set_dump_directory(InHook hook, std::string_view directory, std::uint64_t max_dumps,
                        std::uint64_t max_total_mb) noexcept {
  if (directory.size() >= kPathBytes || (!directory.empty() && directory[0] != '/')) return false;
  const system::MutexGuard guard{g_directories.lock};
  if (!guard) return false;
  StringId string = g_directories.as_started;
  if (directory.empty()) {
    g_directories.current.store(0, std::memory_order_release);
  } else {
    const std::uint32_t slot = slot_of(directory);
    string = string_of(hook, g_directories.paths[slot]);
    g_directories.max_dumps.store(max_dumps, std::memory_order_relaxed);
    // A bound that overflows in bytes is as good as none.
    const bool bound = max_total_mb <= ~std::uint64_t{0} >> 20;
    g_directories.max_total_bytes.store(bound ? max_total_mb << 20 : 0, std::memory_order_relaxed);
    g_directories.current.store(slot + 1, std::memory_order_release);
  }
  // Recovery writes a dead process' bundle there.
  if (phase() == Phase::active && string != 0) g_session.header().dump_directory = string;
  return true;
}

void reset_dump_directory_after_fork(InHook) noexcept { g_directories.lock.unlock(); }

void forget_dump_directories(InHook hook) noexcept {
  reset_dump_directory_after_fork(hook);
  g_directories.current.store(0, std::memory_order_relaxed);
  for (Path& path : g_directories.paths) path.pid = 0;
  g_directories.max_dumps.store(0, std::memory_order_relaxed);
  g_directories.max_total_bytes.store(0, std::memory_order_relaxed);
}

StringId describe_dump_directory(InHook hook) noexcept {
  expand_dump_directory();
  g_directories.as_started = g_session.add_string(hook, dump_directory());
  const std::uint32_t current = g_directories.current.load(std::memory_order_acquire);
  if (current == 0) return g_directories.as_started;
  const StringId string = string_of(hook, g_directories.paths[current - 1]);
  return string != 0 ? string : g_directories.as_started;
}

void make_absolute(const char* path, std::span<char> out) noexcept {
  system::Text text(out.data(), out.size());
  char directory[1024];
  if (path[0] != '/' && system::call(SYS_getcwd, directory, sizeof(directory)) > 0)
    text << directory << '/';
  text << path;
}

}  // namespace oomrec::recorder
