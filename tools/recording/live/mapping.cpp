#include "tools/recording/live/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <memory>
#include <mutex>
#include <vector>

#include "common/machine/page.h"
#include "common/residency/residency.h"
#include "common/session/layout.h"
#include "common/session/view.h"
#include "tools/recording/live/session.h"

namespace oomrec::tools::recording {
namespace {

constexpr std::uint64_t kMostBytes = session::kMaxSegments * session::kSegmentBytes;
constexpr std::size_t kMostMappings = 4096;  // at a time: a list of processes maps each of them

// Read by the SIGBUS handler, which may neither lock nor allocate.
struct Range {
  std::atomic<std::uintptr_t> begin{0};  // 0: unused
  std::atomic<std::uint64_t> size{0};
};
constinit std::array<Range, kMostMappings> g_ranges;
constinit struct sigaction g_previous_action {};

void on_bus_error(int, siginfo_t* info, void*) {
  const int error = errno;
  const auto address = reinterpret_cast<std::uintptr_t>(info->si_addr);
  for (const Range& range : g_ranges) {
    const std::uintptr_t begin = range.begin.load();
    if (begin == 0 || address - begin >= range.size.load()) continue;
    void* const page = reinterpret_cast<void*>(machine::page_down(address));
    if (mmap(page, machine::page_bytes(), PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
             0) == page) {
      errno = error;
      return;
    }
  }
  // Not in our mappings: the access is repeated, and the previous action handles its SIGBUS.
  sigaction(SIGBUS, &g_previous_action, nullptr);
  errno = error;
}

void install_bus_error_handler() {
  static std::once_flag once;
  std::call_once(once, [] {
    struct sigaction ours {};
    ours.sa_sigaction = on_bus_error;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGBUS, &ours, &g_previous_action);
  });
}

// nullptr: all are in use.
Range* register_range(std::uintptr_t begin, std::uint64_t size) {
  const auto range = std::ranges::find_if(g_ranges, [&](Range& candidate) {
    std::uintptr_t unused = 0;
    return candidate.begin.compare_exchange_strong(unused, begin);
  });
  if (range == g_ranges.end()) return nullptr;
  range->size.store(size);
  return &*range;
}

}  // namespace

MappedFile map_file(const std::filesystem::path& file) {
  const int descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (descriptor < 0) return {};
  struct stat status {};
  void* mapped = MAP_FAILED;
  std::uint64_t size = 0;
  errno = EINVAL;
  if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0) {
    size = std::min(static_cast<std::uint64_t>(status.st_size), kMostBytes);
    mapped = mmap(nullptr, size, PROT_READ, MAP_SHARED | MAP_NORESERVE, descriptor, 0);
  }
  const int error = errno;
  close(descriptor);
  errno = error;
  if (mapped == MAP_FAILED) return {};
  install_bus_error_handler();
  Range* const range = register_range(reinterpret_cast<std::uintptr_t>(mapped), size);
  if (range == nullptr) {
    munmap(mapped, size);
    errno = EMFILE;
    return {};
  }
  const auto unmap = [range, size](const std::byte* bytes) {
    range->begin.store(0);
    munmap(const_cast<std::byte*>(bytes), size);
  };
  return {std::shared_ptr<const std::byte>{static_cast<const std::byte*>(mapped), unmap}, size};
}

namespace {

using session::ResidencyPage;
using session::TableId;

// Null: the entry does not exist.
std::byte* page_of(WritableSession& open, std::uint32_t entry) {
  static constexpr session::Chunks kChunks{sizeof(ResidencyPage)};
  if (entry >= open.view().count(TableId::residency)) return nullptr;
  const session::Chunks::Slot slot = kChunks.locate(entry);
  const session::TableDirectory& table =
      open.header().tables[static_cast<std::size_t>(TableId::residency)];
  const std::uint64_t at = table.chunk_offsets[slot.chunk] + slot.byte;
  return table.entry_bytes == sizeof(ResidencyPage) ? open.at(at, sizeof(ResidencyPage)) : nullptr;
}

}  // namespace

bool enter_look(const std::filesystem::path& session, pid_t pid) {
  WritableSession open{session};
  if (!open.is_open() || page_of(open, 1) == nullptr) return false;
  constexpr std::uint64_t kMostNs = 1'000'000'000;  // the process does not run
  std::vector<residency::Piece> pieces(residency::pieces_of(open.view()));
  std::vector<char> text(64 * 1024);
  std::vector<std::uint64_t> blocks(4096);
  const auto look = std::make_unique<residency::Look>();
  residency::look_at(OutsideHooks::in_hook(), pid, open.view(), {pieces, text, blocks},
                     residency::Deadline{kMostNs}, *look);
  const session::Residency* const before = open.view().residency();
  if (look->found.time_ns == 0) return false;
  if (before != nullptr && residency::is_worse(look->found, *before)) return false;

  // In place of the latest one if there is no memory for another.
  const std::uint32_t other = open.header().latest_look == 1 ? 1 + session::kResidencyPages : 1;
  const std::uint32_t first = page_of(open, other) != nullptr ? other : 1;
  std::uint32_t pages = 0;
  while (pages < session::kResidencyPages && page_of(open, first + pages) != nullptr) ++pages;
  const std::size_t fit =
      (pages * sizeof(ResidencyPage) - sizeof look->found) / sizeof(session::ResidencyRow);
  std::sort(look->rows, look->rows + look->found.row_count, [](const auto& a, const auto& b) {
    return std::max(a.untouched_bytes, a.reserved_bytes) >
           std::max(b.untouched_bytes, b.reserved_bytes);
  });
  look->found.row_count =
      static_cast<std::uint32_t>(std::min<std::size_t>(look->found.row_count, fit));
  const auto* const from = reinterpret_cast<const std::byte*>(look.get());
  for (std::uint32_t page = 0; page < pages; ++page)
    std::memcpy(page_of(open, first + page), from + page * sizeof(ResidencyPage),
                sizeof(ResidencyPage));
  open.header().latest_look.store(first, std::memory_order_release);
  return true;
}

}  // namespace oomrec::tools::recording
