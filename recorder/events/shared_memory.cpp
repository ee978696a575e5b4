#include "recorder/events/shared_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <atomic>

#include "common/system/files.h"
#include "common/system/syscalls.h"
#include "common/system/text.h"
#include "recorder/session/reuse.h"
#include "recorder/session/writer.h"
#include "recorder/state/callbacks.h"
#include "recorder/state/state.h"

namespace oomrec::recorder {

using session::SharedMemory;

namespace {

constexpr std::uint64_t kSmallestBytes = 64 * 1024;
constexpr long kTmpfs = 0x01021994;
constexpr std::uint64_t kStatBlockBytes = 512;

constinit std::atomic<bool> g_at_work{false};  // one thread at a time; others skip it

// Reads the file and its file system. False: not in memory, or without a limit.
bool read_space(const Mapping& mapping, int descriptor, std::uint64_t offset,
                SharedMemory& seen) noexcept {
  struct statfs system_of {};
  struct stat file {};
  if (system::call(SYS_fstatfs, descriptor, &system_of) != 0 || system_of.f_type != kTmpfs ||
      system_of.f_blocks == 0 || system::call(SYS_fstat, descriptor, &file) != 0)
    return false;
  const auto block_bytes = static_cast<std::uint64_t>(system_of.f_bsize);
  const auto file_bytes = static_cast<std::uint64_t>(file.st_size);
  const std::uint64_t there = static_cast<std::uint64_t>(file.st_blocks) * kStatBlockBytes;
  // Pages beyond the end of the file never get memory.
  const std::uint64_t mapped =
      offset < file_bytes ? std::min(mapping.bytes, file_bytes - offset) : 0;
  seen.needed_bytes = mapped > there ? mapped - there : 0;
  seen.free_bytes = system_of.f_bavail * block_bytes;
  seen.total_bytes = system_of.f_blocks * block_bytes;
  seen.address = mapping.address;
  return true;
}

void name_file(int descriptor, SharedMemory& seen) noexcept {
  char link[sizeof system::g_roots.proc + 32];
  system::Text text{link};
  text << system::g_roots.proc << "/self/fd/";
  text.number(static_cast<std::uint64_t>(descriptor));
  const long bytes = system::call(SYS_readlinkat, AT_FDCWD, link, seen.path, sizeof seen.path - 1);
  seen.path[bytes < 0 ? 0 : bytes] = '\0';
}

void record(const SharedMemory& seen) noexcept {
  SharedMemory& kept = session::g_session.header().shared;
  if (kept.time_ns.load(std::memory_order_relaxed) != 0 && kept.too_small() && !seen.too_small())
    return;
  session::rewrite(kept.time_ns, system::coarse_ns(), [&]() noexcept {
    kept.needed_bytes = seen.needed_bytes;
    kept.free_bytes = seen.free_bytes;
    kept.total_bytes = seen.total_bytes;
    kept.address.store(seen.address, std::memory_order_relaxed);
    std::copy(std::begin(seen.path), std::end(seen.path), kept.path);
  });
}

}  // namespace

void on_shared_file(InHook hook, const Mapping& mapping, int descriptor,
                    std::uint64_t offset) noexcept {
  if (phase() == Phase::off || (mapping.flags & MAP_SHARED) == 0 || !mapping.file ||
      (mapping.protection & PROT_WRITE) == 0 || mapping.bytes < kSmallestBytes)
    return;
  SharedMemory seen{};
  if (!read_space(mapping, descriptor, offset, seen)) return;
  // This may be the end of a child that has no session yet: begin one.
  if (phase() == Phase::waiting && !(seen.too_small() && begin_waiting_session(hook))) return;
  if (g_at_work.exchange(true, std::memory_order_acquire)) return;
  name_file(descriptor, seen);
  record(seen);
  g_at_work.store(false, std::memory_order_release);
}

void release_shared_file(std::uint64_t address, std::uint64_t bytes) noexcept {
  std::atomic<std::uint64_t>& kept = session::g_session.header().shared.address;
  if (kept.load(std::memory_order_relaxed) - address < bytes)
    kept.store(0, std::memory_order_relaxed);
}

void reset_shared_memory_after_fork(InHook) noexcept {
  g_at_work.store(false, std::memory_order_relaxed);
}

}  // namespace oomrec::recorder
