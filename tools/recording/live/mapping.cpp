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
#include <mutex>

#include "common/machine/page.h"
#include "common/session/layout.h"

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
  const auto range = std::find_if(g_ranges.begin(), g_ranges.end(), [&](Range& candidate) {
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

}  // namespace oomrec::tools::recording
