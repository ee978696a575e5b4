// Puts Python's frames where the eval loop's native frames stand.
//
// By address, not by name: from 3.10 on something of each Python call lies in the C frame of the
// eval loop that runs it (a CFrame, a shim frame), so native frame j runs it when
// sp_j ≤ marker < sp_(j+1). That holds whatever the compiler made of the eval loop. Up to 3.9
// nothing does: there one native frame of the eval loop runs one Python frame. Frames with the same
// marker are of one call.
//
// A Python frame that finds no native one keeps its place in the order: nothing is lost.

#include <algorithm>

#include "recorder/session/view.h"
#include "recorder/stack/python.h"

namespace oomrec::stack {
namespace {

bool in_eval_loop(const NativeFrame& frame) noexcept {
  const std::uint64_t pc = frame.exact ? frame.pc : frame.pc - 1;
  return std::ranges::any_of(g_interpreter.eval_loop,
                             [pc](const Interpreter::Range& part) { return part.contains(pc); });
}

std::uint64_t word_of(InHook hook, const NativeFrame& frame) noexcept {
  const ModuleRef module = module_at(hook, frame.exact ? frame.pc : frame.pc - 1);
  return session::native_frame(module.id, frame.pc - module.base, frame.exact, frame.guessed);
}

// The native chain and how far it has been written.
class Merger {
 public:
  Merger(InHook hook, NativeFrame* native, std::uint32_t native_count, bool native_truncated,
         std::uint64_t* merged, std::uint32_t capacity) noexcept
      : hook_(hook),
        native_(native),
        native_count_(native_count),
        native_truncated_(native_truncated),
        merged_(merged),
        capacity_(capacity) {}

  // Python frames of the eval call with this marker follow.
  void enter_call(std::uint64_t marker) noexcept {
    const std::uint32_t owner = owner_of(marker);
    if (owner < native_count_) {
      write_native(owner);
      ++written_;  // they stand in its place
    } else if (lies_beyond(marker)) {
      write_native(native_count_);
    }
  }

  void write_native(std::uint32_t end) noexcept {
    for (; written_ < end; ++written_) {
      NativeFrame& frame = native_[written_];
      if (frame.word == 0) frame.word = word_of(hook_, frame);
      put(frame.word);
    }
  }

  void write_python(std::uint64_t word) noexcept { put(word); }

  std::uint32_t count() const noexcept { return count_; }
  bool is_cut() const noexcept { return cut_; }

 private:
  // The native frame, not written yet, that runs the Python frame with this marker; native_count
  // when there is none.
  std::uint32_t owner_of(std::uint64_t marker) const noexcept {
    for (std::uint32_t j = written_; j < native_count_; ++j) {
      if (marker == 0 ? in_eval_loop(native_[j]) : holds(j, marker)) return j;
    }
    return native_count_;
  }

  // Its C frame was cut off the native chain.
  bool lies_beyond(std::uint64_t marker) const noexcept {
    if (marker == 0) return native_truncated_;
    return native_count_ != 0 && marker >= native_[native_count_ - 1].sp;
  }

  bool holds(std::uint32_t j, std::uint64_t marker) const noexcept {
    if (marker < native_[j].sp) return false;
    if (j + 1 < native_count_) return marker < native_[j + 1].sp;
    return !native_truncated_;
  }

  void put(std::uint64_t word) noexcept {
    if (count_ == capacity_) {
      cut_ = true;
    } else {
      merged_[count_++] = word;
    }
  }

  const InHook hook_;
  NativeFrame* const native_;
  const std::uint32_t native_count_;
  const bool native_truncated_;
  std::uint64_t* const merged_;
  const std::uint32_t capacity_;
  std::uint32_t written_ = 0;
  std::uint32_t count_ = 0;
  bool cut_ = false;
};

}  // namespace

std::uint32_t merge(InHook hook, NativeFrame* native, std::uint32_t native_count,
                    bool native_truncated, const PythonStack& python, std::uint64_t* merged,
                    std::uint32_t capacity, bool* cut) noexcept {
  Merger merger(hook, native, native_count, native_truncated, merged, capacity);
  std::uint64_t call = 0;
  for (std::uint32_t left = python.count; left != 0; --left) {
    const PythonLink& link = python.links[left - 1];
    if (link.word == 0) continue;
    if (link.marker == 0 || link.marker != call) merger.enter_call(link.marker);
    call = link.marker;
    merger.write_python(link.word);
  }
  merger.write_native(native_count);
  if (cut != nullptr) *cut = merger.is_cut();
  return merger.count();
}

}  // namespace oomrec::stack
