#include "common/bundle/session_summary.h"

#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "common/session/chunks.h"
#include "common/session/view.h"
#include "common/system/files.h"
#include "common/text/text.h"

namespace oomrec::bundle {
namespace {

using session::TableId;

constexpr std::uint64_t kMaxLanes = 1024;
constexpr std::uint32_t kMaxPathBytes = 4096;

}  // namespace

SessionSummary::SessionSummary(int directory, const char* name, char* buffer) noexcept
    : fd_(system::open_at(directory, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK)) {
  if (fd_ < 0 || !is_ours() || !read(0, buffer, session::kHeaderBytes)) return;
  const session::View view{session::Bytes::contiguous(buffer, session::kHeaderBytes)};
  if (view.problem() == session::Problem::none) header_ = &view.header();
}

SessionSummary::~SessionSummary() {
  if (fd_ >= 0) system::close(fd_);
}

bool SessionSummary::is_ours() const noexcept {
  struct stat status;
  return system::fallible_call(SYS_fstat, fd_, reinterpret_cast<long>(&status)) == 0 &&
         S_ISREG(status.st_mode) &&
         status.st_uid == static_cast<uid_t>(system::fallible_call(SYS_geteuid));
}

// Reads all bytes, or returns false.
bool SessionSummary::read(std::uint64_t offset, void* to, std::size_t bytes) const noexcept {
  long got = 0;
  do {
    got = system::fallible_call(SYS_pread64, fd_, reinterpret_cast<long>(to),
                                static_cast<long>(bytes), static_cast<long>(offset));
  } while (got == -EINTR);
  return got == static_cast<long>(bytes);
}

std::uint64_t SessionSummary::offset_of(TableId table, std::uint64_t index) const noexcept {
  const session::TableDirectory& directory = header().tables[static_cast<std::size_t>(table)];
  const std::uint32_t entry_bytes = directory.entry_bytes;
  const bool possible = entry_bytes != 0 && entry_bytes <= session::kMaxEntryBytes;
  if (!possible || index >= directory.committed.load(std::memory_order_relaxed)) return 0;
  const session::Chunks::Slot slot = session::Chunks{entry_bytes}.locate(index);
  if (slot.chunk >= session::kMaxChunks) return 0;
  const std::uint64_t chunk = directory.chunk_offsets[slot.chunk].load(std::memory_order_relaxed);
  return chunk == 0 ? 0 : chunk + slot.byte;
}

std::string_view SessionSummary::base_name(session::StringId path,
                                           std::span<char> buffer) const noexcept {
  const std::uint64_t offset = path == 0 ? 0 : offset_of(TableId::strings, path);
  std::uint32_t length = 0;
  if (offset == 0 || !read(offset, &length, sizeof length) || length > kMaxPathBytes) return {};
  const std::size_t end = std::min<std::size_t>(length, buffer.size());
  if (!read(offset + sizeof length + length - end, buffer.data(), end)) return {};
  return text::base_name({buffer.data(), end});
}

std::uint64_t SessionSummary::live_bytes(Space space) const noexcept {
  const auto number = static_cast<std::size_t>(space);
  const session::TableDirectory& lanes = header().tables[static_cast<std::size_t>(TableId::lanes)];
  const std::uint64_t count = lanes.committed.load(std::memory_order_relaxed);
  std::uint64_t sum = 0;
  if (count > kMaxLanes) {
    sum = static_cast<std::uint64_t>(
        header().spaces[number].published_live_bytes.load(std::memory_order_relaxed));
  } else {
    const std::size_t at =
        offsetof(session::Lane, spaces) + number * sizeof(session::SpaceCounters);
    for (std::uint64_t lane = 1; lane < count; ++lane) {
      const std::uint64_t offset = offset_of(TableId::lanes, lane);
      session::SpaceCounters counters;
      if (offset == 0 || at + sizeof counters > lanes.entry_bytes ||
          !read(offset + at, static_cast<void*>(&counters), sizeof counters)) {
        continue;
      }
      sum += counters.usable_allocated_bytes - counters.usable_freed_bytes;
    }
  }
  return static_cast<std::int64_t>(sum) < 0 ? 0 : sum;
}

bool have_comparable_pids(const session::Header& one, const session::Header& other) noexcept {
  return one.pid_namespace == other.pid_namespace &&
         std::memcmp(one.boot_id, other.boot_id, sizeof one.boot_id) == 0 &&
         std::strncmp(one.host, other.host, sizeof one.host) == 0;
}

bool is_visible_by_pid(const session::Header& header) noexcept {
  return header.start_ticks != 0 && system::start_ticks(header.pid) == header.start_ticks;
}

}  // namespace oomrec::bundle
