// The rows of an export: holders by symbolized stack, and the frames of their stacks.
//
// Stacks that are equal without the functions of the Python interpreter are merged
// (tools/recording/analysis/stacks.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::views {

struct Amount {
  std::uint64_t bytes = 0, count = 0;
};

struct HolderRow {
  recording::StackId stack = 0;
  Space space = Space::heap;
  Api api = Api::none;  // of the row's first holder
  bool estimated = false;
  Amount end, peak, ever;                       // the end as holders weigh (recording::Weight)
  Amount live;                                  // at the end, as given
  std::optional<std::uint64_t> resident_bytes;  // of which in memory or in swap; nothing: unknown
  std::uint64_t temporary = 0;  // blocks freed before their thread's next allocation (exact mode)

  const Amount& at(recording::At when) const {
    return when == recording::At::end ? end : when == recording::At::peak ? peak : ever;
  }
};

// Which holders to export.
struct Selection {
  std::string space = "all";  // or a space; all: those that add up
  std::string group;          // of threads; empty: all
};

// The name of a stack's thread group; empty: unknown.
std::string_view group_of(const session::View& view, std::uint32_t node);

// The largest at the end of the recording come first.
std::vector<HolderRow> holder_rows(const recording::Recording&, recording::Stacks&,
                                   const Selection&);

// The stack to export for a node: without the interpreter's functions.
recording::StackId exported_stack(recording::Stacks&, std::uint32_t node);

// The locations of a stack, innermost first; {0} if no stack was recorded.
std::vector<recording::LocationId> frames_of(const recording::Stacks&, recording::StackId);

// A frame's name: "make_batch (train.py:31)", "PyArray_NewFromDescr",
// "libfoo.so+0x1234". Safe to print, at most kLongestName wide.
std::string frame_name(const recording::Locations&, recording::LocationId);
inline constexpr std::size_t kLongestName = 400;

// Numbers ids 0, 1, 2 … in the order of their first use.
class Numbering {
 public:
  std::uint32_t operator()(std::uint32_t id) {
    const auto [at, is_new] = numbers_.try_emplace(id, static_cast<std::uint32_t>(ids_.size()));
    if (is_new) ids_.push_back(id);
    return at->second;
  }
  const std::vector<std::uint32_t>& ids() const { return ids_; }

 private:
  std::unordered_map<std::uint32_t, std::uint32_t> numbers_;
  std::vector<std::uint32_t> ids_;
};

}  // namespace oomrec::tools::views
