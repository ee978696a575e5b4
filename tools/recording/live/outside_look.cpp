#include "tools/recording/live/outside_look.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <vector>

#include "common/residency/residency.h"
#include "common/session/view.h"
#include "common/system/files.h"

namespace oomrec::tools::recording {
namespace {

using session::ResidencyPage;
using session::TableId;

// A session, mapped to be changed.
class OpenSession {
 public:
  explicit OpenSession(const std::filesystem::path& path) {
    const int fd = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
    struct stat status {};
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode)) {
      bytes_ = static_cast<std::size_t>(status.st_size);
      void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
      if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
    }
    if (fd >= 0) close(fd);
    if (memory_ != nullptr) view_ = session::View{session::Bytes::contiguous(memory_, bytes_)};
  }
  ~OpenSession() {
    if (memory_ != nullptr) munmap(memory_, bytes_);
  }
  OpenSession(const OpenSession&) = delete;
  OpenSession& operator=(const OpenSession&) = delete;

  const session::View& view() const { return view_; }
  session::Header& header() { return *reinterpret_cast<session::Header*>(memory_); }
  // Null: the entry does not exist.
  std::byte* page(std::uint32_t entry) {
    static constexpr session::Chunks kChunks{sizeof(ResidencyPage)};
    if (entry >= view_.count(TableId::residency)) return nullptr;
    const session::Chunks::Slot slot = kChunks.locate(entry);
    const session::TableDirectory& table =
        header().tables[static_cast<std::size_t>(TableId::residency)];
    const std::uint64_t at = table.chunk_offsets[slot.chunk] + slot.byte;
    const bool is_inside = view_.bytes().at(at, sizeof(ResidencyPage)) != nullptr;
    return table.entry_bytes == sizeof(ResidencyPage) && is_inside ? memory_ + at : nullptr;
  }

 private:
  std::byte* memory_ = nullptr;
  std::size_t bytes_ = 0;
  session::View view_;
};

}  // namespace

bool enter_look(const std::filesystem::path& session, pid_t pid) {
  OpenSession open{session};
  if (open.view().problem() != session::Problem::none || open.page(1) == nullptr) return false;
  constexpr std::uint64_t kMostNs = 1'000'000'000;  // the process does not run
  std::vector<residency::Piece> pieces(residency::pieces_of(open.view()));
  std::vector<char> text(64 * 1024);
  std::vector<std::uint64_t> blocks(4096);
  const auto look = std::make_unique<residency::Look>();
  residency::look_at(OutsideHooks::in_hook(), pid, open.view(), {pieces, text, blocks},
                     system::monotonic_ns() + kMostNs, *look);
  const session::Residency* const before = open.view().residency();
  if (look->found.time_ns == 0) return false;
  if (before != nullptr && residency::is_worse(look->found, *before)) return false;

  // In place of the latest one if there is no memory for another.
  const std::uint32_t other = open.header().latest_look == 1 ? 1 + session::kResidencyPages : 1;
  const std::uint32_t first = open.page(other) != nullptr ? other : 1;
  std::uint32_t pages = 0;
  while (pages < session::kResidencyPages && open.page(first + pages) != nullptr) ++pages;
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
    std::memcpy(open.page(first + page), from + page * sizeof(ResidencyPage),
                sizeof(ResidencyPage));
  open.header().latest_look.store(first, std::memory_order_release);
  return true;
}

}  // namespace oomrec::tools::recording
