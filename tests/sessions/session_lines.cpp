// session_lines FILE: what a session holds, one line an entry, in an order and in words that do not
// depend on when the recorder saw what: two recordings of a program that does the same must be
// equal. A stack is written once, and named by the hash of its text.
//
// Left out: times, thread ids, and figures that are only published about every 64 KiB.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "common/session/view.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

constexpr u64 kEvents = 100;  // the latest of each lane; the smallest ring has 256 slots

class Lines {
 public:
  explicit Lines(const View& view) : view_(view) {}

  void print() {
    holders();
    lanes();
    for (u64 page = 1; page < view_.count(TableId::side_pages); ++page)
      view_.for_each_small_block(page, [&](const SmallBlock& block) {
        add("small block {:x} {} of {:x}", block.address, block.bytes, stack(block.node));
      });
    LiveBlock block;
    for (u64 i = 1; i < view_.count(TableId::live_blocks); ++i)
      if (view_.read(TableId::live_blocks, i, block) && block.address.load() != 0)
        add("block {:x} {}", block.address.load(), +block.bytes);
    std::sort(lines_.begin(), lines_.end());
    for (const std::string& line : lines_) std::puts(line.c_str());
  }

 private:
  template <class... Parts>
  void add(fmt::format_string<Parts...> format, Parts&&... parts) {
    lines_.push_back(fmt::format(format, std::forward<Parts>(parts)...));
  }

  std::string text(StringId id) const { return std::string{view_.string(id)}; }

  std::string frame(u64 word) const {
    switch (kind_of(word)) {
      case FrameKind::native: {
        Module module{};
        view_.read(TableId::modules, module_of(word), module);
        return fmt::format("{}+{:x}", text(module.path), offset_of(word));
      }
      case FrameKind::script:
      case FrameKind::python: {
        Code code{};
        view_.read(TableId::codes, code_of(word), code);
        return fmt::format("{}:{}+{}", text(code.file), text(code.name), instruction_of(word));
      }
      default:
        return fmt::format("special {} {}", static_cast<int>(special_of(word)),
                           text(argument_of(word)));
    }
  }

  std::size_t stack(u32 node) {
    const auto known = stacks_.find(node);
    if (known != stacks_.end()) return known->second;
    std::string frames;
    view_.walk(node, [&](u64 word) { frames += frame(word) + ";"; });
    const std::size_t hash = std::hash<std::string>{}(frames);
    add("stack {:x} {}", hash, frames);
    return stacks_[node] = hash;
  }

  void holders() {
    for (u64 i = 1; i < view_.count(TableId::holders); ++i) {
      Holder holder;
      if (!view_.holder(i, holder) || holder.total_count.load() == 0) continue;
      add("holder {} live {} {} total {} {} temporary {} of {:x}", holder.space,
          holder.live_bytes.load(), holder.live_count.load(), holder.total_bytes.load(),
          holder.total_count.load(), holder.temporary_count.load(), stack(holder.node));
    }
  }

  void lanes() {
    for (u64 i = 1; i < view_.count(TableId::lanes); ++i) {
      Lane lane;
      if (!view_.read(TableId::lanes, i, lane)) continue;
      for (std::size_t space = 0; space < kSpaceCount; ++space) {
        const SpaceCounters& own = lane.spaces[space];
        add("lane {} space {}: {} {} {} {} {} {}", i, space, own.allocated_bytes.load(),
            own.allocated_count.load(), own.freed_count.load(), own.usable_allocated_bytes.load(),
            own.usable_freed_bytes.load(), own.failed_count.load());
      }
      for (std::size_t api = 0; api < std::size(lane.apis); ++api)
        add("lane {} api {}: {} {}", i, api, lane.apis[api].count.load(),
            lane.apis[api].bytes.load());
      for (std::size_t size = 0; size < std::size(lane.sizes); ++size)
        add("lane {} size {}: {} {}", i, size, lane.sizes[size].count.load(),
            lane.sizes[size].bytes.load());
      events(i, lane);
    }
  }

  void events(u64 number, const Lane& lane) {
    add("lane {} events {}", number, lane.ring_next.load() - lane.stamps.load());
    u64 found = 0;
    for (u64 at = lane.ring_next.load(); at-- != 0 && found != kEvents;) {
      Event event;
      if (!view_.event(lane, at, event)) break;
      if (event.is_stamp()) continue;
      add("lane {} event -{:03} kind {} api {} {:x} {} of {:x}", number, found++,
          static_cast<int>(event.kind), static_cast<int>(event.api), event.address, event.bytes,
          stack(event.stack));
    }
  }

  const View& view_;
  std::map<u32, std::size_t> stacks_;  // hashes
  std::vector<std::string> lines_;
};

}  // namespace

int main(int argc, char** argv) {
  const int file = argc == 2 ? open(argv[1], O_RDONLY | O_CLOEXEC) : -1;
  struct stat status;
  if (file < 0 || fstat(file, &status) != 0) return 2;
  const auto bytes = static_cast<std::size_t>(status.st_size);
  const void* const data = mmap(nullptr, bytes, PROT_READ, MAP_PRIVATE, file, 0);
  if (data == MAP_FAILED) return 2;
  const View view{Bytes::contiguous(data, bytes)};
  if (view.problem() != Problem::none) return 3;
  Lines{view}.print();
}
