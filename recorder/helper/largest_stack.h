// The stack that holds most, for the report at a failure. The same stack and figures as the first
// of `oomrec show`, from a fixed amount of memory.
#pragma once

#include <cstdint>
#include <span>

#include "common/bundle/bundle.h"
#include "common/bundle/largest.h"
#include "common/residency/rows.h"
#include "common/session/entries.h"
#include "common/session/view.h"
#include "common/verdict/verdict.h"

namespace oomrec::helper {

// The frames by which a reader recognizes a stack. 0: none.
struct KeyFrames {
  std::uint64_t own_code =
      0;  // the innermost line, of Python or of a script, of the program's own code
  std::uint64_t code = 0;        // the innermost of all
  std::uint64_t native = 0;      // the innermost one outside allocators and the C library
  std::uint64_t own_native = 0;  // the innermost one of these in a module of the program
  std::uint32_t node = 0;        // the stack they are of
};
KeyFrames key_frames(const session::View& view, std::uint32_t node) noexcept;

// Stacks with equal keys are one, as `oomrec show` groups them: of those that run Python the lines
// count, and native functions of the program's own. Functions that call themselves, also by way of
// up to seven others, count once, with the innermost lines. A native function has no name here,
// only the place of its call: of it, the outermost depth is another stack.
class StackKey {
 public:
  std::uint64_t of(const session::View& view, std::uint32_t node, bool runs_code) noexcept;

 private:
  // The next frame further out: its function, and where in it.
  void add(std::uint64_t function, std::uint64_t place) noexcept;

  std::uint64_t functions_[session::kMaxFrames];
  std::uint64_t places_[session::kMaxFrames];
  std::uint32_t count_;
};

// The memory that one stack holds on the host, or in one space of a device, as `oomrec show` groups
// stacks (StackKey).
struct StackSum {
  KeyFrames frames;  // of the largest holder
  std::uint64_t key;
  std::uint64_t bytes;
  std::uint64_t blocks;
  std::uint8_t space;  // of the largest holder
  bool estimated;
  bool is_pool;  // of Python's small objects
};

// Sums by stack. Once kMost stacks are known, others are ignored.
class StackSums {
 public:
  static constexpr std::size_t kMost = 1024;

  void clear() noexcept;
  // `one`: what one holder adds. The frames are read only for a stack that is new.
  template <class Frames>
  void add(StackSum one, Frames&& frames) noexcept;
  const StackSum* largest() const noexcept;  // nullptr: there is none

 private:
  static constexpr std::size_t kSlots = 4096;  // a power of two

  std::size_t count_;
  std::uint16_t slots_[kSlots];  // 1 + index in sums_; 0: free
  StackSum sums_[kMost];
};

// Which spaces compete for the largest holder: the host's or the devices', after the failed
// request; both if the program itself requested the bundle. PyTorch's blocks lie inside the
// driver's, so the two are never compared: where PyTorch divides a device's memory, its blocks
// count.
struct ComparedSpaces {
  bool host, devices, torch;
  std::uint32_t on_device;  // 0: on any

  ComparedSpaces(const session::View&, const bundle::Cause&, const verdict::Verdict&) noexcept;
  bool operator()(Space) const noexcept;
};

// A line has several holders when the interpreter reaches it through different internal functions,
// and one for each way through a recursion: thousands, if that is through a tree. The largest ones
// are taken first, the smaller ones as far as there is time.
struct Largest {
  static constexpr std::size_t kCandidates = 1024;
  static constexpr std::size_t kOnDevice = 64;  // each block of the device is compared with them

  bundle::LargestHolder holders[kCandidates];
  StackSums sums;
  std::uint64_t blocks[kOnDevice];
  StackKey key;
  bool is_partial;  // there was no time for some holders
};
static_assert(sizeof(Largest) <= sizeof bundle::Workspace::sort);

// The walks of the smaller holders' stacks end after so many frames: about 50 ms.
inline constexpr std::uint64_t kMostFrames = std::uint64_t{1} << 20;

// Null: there are no live blocks. Cost: a pass over all holders, and a walk of each candidate's
// stack; two passes, and walks of up to kMostFrames, where the candidates are not all.
// With `rows`, memory weighs what of it is resident.
const StackSum* largest_stack(const session::View&, Largest& memory, const ComparedSpaces& wanted,
                              const residency::Rows* rows) noexcept;

}  // namespace oomrec::helper
