#define UNW_LOCAL_ONLY
#include "recorder/stack/odd_frames.h"

#include <libunwind.h>

#include <new>

namespace oomrec::stack {
namespace {

// What libunwind was measured to need below us (unw_step with an expression: 5 KiB), twice.
constexpr std::uint64_t kStackNeeded = 12 * 1024;

struct Unwinder {
  unw_context_t context;
  unw_cursor_t cursor;
};
static_assert(sizeof(Unwinder) <= sizeof(ThreadStacks::unwinder));

std::uint64_t value_of(unw_cursor_t& cursor, int number) noexcept {
  unw_word_t value = 0;
  return unw_get_reg(&cursor, number, &value) == 0 ? value : 0;
}

}  // namespace

void start_odd_frames(InHook) noexcept {
  // A cache would need locks, and would be wrong after a library was replaced at its address.
  unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
  // The first use initializes, with system calls.
  unw_context_t context;
  unw_cursor_t cursor;
  unw_getcontext(&context);
  unw_init_local(&cursor, &context);
}

bool has_room_for_libunwind(const StackRange& bounds) noexcept {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  return here >= bounds.low && here - bounds.low >= kStackNeeded;
}

bool step_odd_frame(InHook, ThreadStacks& thread, const StackRange& bounds, const FrameState& frame,
                    FrameState& next) noexcept {
  if (!has_room_for_libunwind(bounds)) return false;
  Unwinder& unwinder = *reinterpret_cast<Unwinder*>(thread.unwinder);
  unw_getcontext(&unwinder.context);
  if (unw_init_local(&unwinder.cursor, &unwinder.context) != 0) return false;
  constexpr unsigned kFramesBelow = 64;
  for (unsigned steps = 0; steps < session::kMaxFrames + kFramesBelow; ++steps) {
    const bool there = value_of(unwinder.cursor, UNW_X86_64_RSP) == frame.sp &&
                       value_of(unwinder.cursor, UNW_REG_IP) == frame.pc;
    const bool signal = there && unw_is_signal_frame(&unwinder.cursor) > 0;
    if (unw_step(&unwinder.cursor) <= 0) return false;
    if (!there) continue;
    next = {value_of(unwinder.cursor, UNW_REG_IP), value_of(unwinder.cursor, UNW_X86_64_RSP),
            value_of(unwinder.cursor, UNW_X86_64_RBP), signal, false};
    return true;
  }
  return false;
}

}  // namespace oomrec::stack

// libunwind opens a pipe to try addresses with, and keeps it open; we give it none, and it takes
// such addresses (which only its own guessing needs) for unreadable.
extern "C" int oomrec_unwind_pipe2(int* ends, int) {
  ends[0] = ends[1] = -1;
  return -1;
}
