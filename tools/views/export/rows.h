// What exports are made of: holders by named stack, and the frames of their stacks.
//
// Stacks that read alike without the interpreter's own functions are one
// (tools/recording/analysis/stacks.h).
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "tools/recording/analysis/stacks.h"

namespace oomrec::tools::views {

struct Held {
  std::uint64_t bytes = 0, count = 0;
};

struct HolderRow {
  recording::StackId stack = 0;
  Space space = Space::heap;
  Api api = Api::none;  // of the first that allocated there
  bool estimated = false;
  Held end, peak, ever;
  std::uint64_t temporary = 0;  // blocks freed before their thread's next allocation (exact mode)

  const Held& at(recording::At when) const {
    return when == recording::At::end ? end : when == recording::At::peak ? peak : ever;
  }
};

// Which holders: of one space, or of "all" that add up; of one group of threads, or of all (empty).
struct Selection {
  std::string space = "all";
  std::string group;
};

// What held most at the end comes first.
std::vector<HolderRow> holder_rows(const recording::Recording&, recording::Stacks&,
                                   const Selection&);

// The stack of a node as it is exported.
recording::StackId exported_stack(recording::Stacks&, std::uint32_t node);

// The places of a stack, innermost first; {0} where no stack was recorded.
std::vector<recording::PlaceId> frames_of(const recording::Stacks&, recording::StackId);

// What a frame is called in a picture: "make_batch (train.py:31)", "PyArray_NewFromDescr",
// "libfoo.so+0x1234". Safe to print, at most kLongestName wide.
std::string frame_name(const recording::Places&, recording::PlaceId);
inline constexpr std::size_t kLongestName = 400;

// Numbers ids 0, 1, 2 … in the order in which they are first met.
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
