// Replaces the eval loop's native frames by Python's frames.
//
// By address, not by name: from 3.10 on a part of each Python call (a CFrame, a shim frame) lies in
// the C frame of the eval loop that runs it, so native frame j runs it if sp_j ≤ marker < sp_(j+1),
// whatever the compiler made of the eval loop. Up to 3.9 no part of it does: there one native frame
// of the eval loop runs one Python frame. Frames with the same marker belong to one call.
//
// A Python frame without a native one keeps its position: nothing is lost.
//
// Why a join equals the full merge: calls are matched from the innermost outwards, each with the
// first native frame not yet passed. When all calls inside the join match native frames inside it,
// the search for the next call starts where it started in the last stack, except for unmatched
// native frames inside the join. None of these contains an outer marker, because stack pointers
// grow outwards (capture.cpp does not join across signal frames, where they may not). Where calls
// are matched by function (up to 3.9), no unmatched frame may be the eval loop's.
#include "recorder/stack/merge.h"

#include <algorithm>

#include "common/session/view.h"
#include "recorder/python/interpreter.h"

namespace oomrec::stack {
namespace {

bool in_eval_loop(const NativeFrame& frame) noexcept {
  const std::uint64_t pc = frame.exact ? frame.pc : frame.pc - 1;
  return std::ranges::any_of(g_interpreter.eval_loop,
                             [pc](const Interpreter::Range& part) { return part.contains(pc); });
}

std::uint64_t word_of(InHook hook, const NativeFrame& frame) noexcept {
  const ModuleRef module = module_at(hook, frame.exact ? frame.pc : frame.pc - 1);
  return session::native_frame(module.id, frame.pc - module.base,
                               {.exact = frame.exact, .guessed = frame.guessed});
}

bool is_python(const MergedFrame& frame) noexcept {
  return session::kind_of(frame.word) == session::FrameKind::python;
}

// Writes the merged stack, from the innermost frame outwards.
class Merger {
 public:
  Merger(InHook hook, const NativeStack& native, const PythonStack& python, const Join& join,
         MergedFrame* merged, std::uint32_t capacity) noexcept
      : hook_(hook),
        native_(native),
        end_(native.count - join.native),
        by_function_(python.count != 0 && python.frames[0].marker == 0),
        join_(join),
        merged_(merged),
        capacity_(capacity) {}

  // Python frames of the eval call with this marker follow; `python` links are outside it.
  void enter_call(std::uint64_t marker, std::uint32_t python) noexcept {
    if (marker != 0 && marker == join_.call) {
      write_native(end_, python);
      owner_ = end_;
      return;
    }
    owner_ = owner_of(marker);
    if (owner_ < end_) {
      write_native(owner_, python);
      ++written_;  // the Python frames replace it
      return;
    }
    regular_ = false;
    if (lies_beyond(marker)) write_native(end_, python);
  }

  void write_python(std::uint64_t word, std::uint32_t python) noexcept {
    put(word, native_.count - owner_, python);
  }

  void write_native(std::uint32_t end, std::uint32_t python) noexcept {
    for (; written_ < end; ++written_) {
      NativeFrame& frame = native_.frames[written_];
      if (frame.word == 0) frame.word = word_of(hook_, frame);
      if (by_function_ && in_eval_loop(frame)) regular_ = false;
      put(frame.word, native_.count - written_, python);
    }
  }

  Merged end() noexcept {
    write_native(end_, join_.python);
    return {count_, cut_, regular_ && !cut_};
  }

 private:
  // The native frame, not yet written, that runs the Python frames with this marker; end_: none.
  std::uint32_t owner_of(std::uint64_t marker) const noexcept {
    for (std::uint32_t j = written_; j < end_; ++j) {
      if (marker == 0 ? in_eval_loop(native_.frames[j]) : holds(j, marker)) return j;
    }
    return end_;
  }

  // Whether its C frame is beyond the end of a truncated native chain.
  bool lies_beyond(std::uint64_t marker) const noexcept {
    if (marker == 0) return native_.truncated;
    return native_.count != 0 && marker >= native_.frames[native_.count - 1].sp;
  }

  bool holds(std::uint32_t j, std::uint64_t marker) const noexcept {
    if (marker < native_.frames[j].sp) return false;
    if (j + 1 < native_.count) return marker < native_.frames[j + 1].sp;
    return !native_.truncated;
  }

  void put(std::uint64_t word, std::uint32_t native, std::uint32_t python) noexcept {
    if (count_ == capacity_) {
      cut_ = true;
    } else {
      merged_[count_++] = {word, 0, static_cast<std::uint16_t>(native),
                           static_cast<std::uint16_t>(python), 0};
    }
  }

  const InHook hook_;
  const NativeStack& native_;
  const std::uint32_t end_;  // of the native frames that are merged
  const bool by_function_;
  const Join& join_;
  MergedFrame* const merged_;
  const std::uint32_t capacity_;
  std::uint32_t written_ = 0;
  std::uint32_t owner_ = 0;  // of the present call
  std::uint32_t count_ = 0;
  bool cut_ = false;
  bool regular_ = true;
};

// The outermost shown Python frame beyond the first `python` links; null if there is none.
const PythonFrame* first_inside(const PythonStack& stack, std::uint32_t python) noexcept {
  const PythonFrame* const end = stack.frames + stack.count;
  const PythonFrame* const first = std::find_if(
      stack.frames + python, end, [](const PythonFrame& frame) { return frame.word != 0; });
  return first == end ? nullptr : first;
}

}  // namespace

Join join_of(const MergedCache& cache, const NativeStack& native,
             const PythonStack& python) noexcept {
  const auto is_reused = [&](const MergedFrame& frame) {
    return frame.native <= native.reused && frame.python <= python.reused;
  };
  const MergedFrame* const frames = cache.frames;
  std::uint32_t count = std::min(cache.count, native.reused + python.reused);
  while (count != 0 && !is_reused(frames[count - 1])) --count;
  if (count == 0) return {};
  // Native frames inside the next Python frame come after it.
  if (const PythonFrame* const next = first_inside(python, frames[count - 1].python)) {
    const auto may_be_inside = [&](const MergedFrame& frame) {
      return !is_python(frame) &&
             (next->marker == 0 || native.frames[native.count - frame.native].sp <= next->marker);
    };
    while (count != 0 && may_be_inside(frames[count - 1])) --count;
    if (count == 0) return {};
  }
  const MergedFrame& innermost = frames[count - 1];
  return {count, innermost.native, innermost.python,
          is_python(innermost) ? python.frames[innermost.python - 1].marker : 0};
}

Merged merge(InHook hook, const NativeStack& native, const PythonStack& python, const Join& join,
             MergedFrame* merged, std::uint32_t capacity) noexcept {
  Merger merger(hook, native, python, join, merged, capacity);
  std::uint64_t call = 0;
  for (std::uint32_t i = python.count; i > join.python; --i) {
    const PythonFrame& frame = python.frames[i - 1];
    if (frame.word == 0) continue;
    if (frame.marker == 0 || frame.marker != call) merger.enter_call(frame.marker, i);
    call = frame.marker;
    merger.write_python(frame.word, i);
  }
  return merger.end();
}

}  // namespace oomrec::stack
