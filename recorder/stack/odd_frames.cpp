#define UNW_LOCAL_ONLY
#include "recorder/stack/odd_frames.h"

#include <libunwind.h>

#include "common/machine/frames.h"
#include "common/machine/instructions.h"
#include "recorder/symbols/elf_symbols.h"

namespace oomrec::stack {
namespace {

// Twice the stack that libunwind was measured to use (unw_step with an expression: 5 KiB).
constexpr std::uint64_t kStackNeeded = 12 * 1024;

struct Unwinder {
  unw_context_t context;
  unw_cursor_t cursor;
};
static_assert(sizeof(Unwinder) <= sizeof(ThreadStacks::unwinder));

bool holds(std::uint64_t low, std::uint64_t high, std::uint64_t address) noexcept {
  return address >= low && address < high && high - address >= sizeof(unw_word_t);
}

// The memory that the calling thread's walk may read directly; the rest is read through the kernel.
// Compilers emit CFI that is wrong for single instructions (the end of a realigned function), and a
// signal may arrive at each: then libunwind reads arbitrary addresses.
class Readable {
 public:
  Readable(const Unwinder& unwinder, const StackRange& stack) noexcept
      : registers_(reinterpret_cast<std::uint64_t>(&unwinder)), stack_(stack) {
    t_readable = this;
  }
  ~Readable() { t_readable = nullptr; }
  Readable(const Readable&) = delete;
  Readable& operator=(const Readable&) = delete;

  // unw_accessors_t::access_mem; reads only.
  static int access(unw_addr_space_t, unw_word_t address, unw_word_t* value, int write, void*) {
    if (write != 0) return -UNW_EREADONLYREG;
    if (t_readable != nullptr && t_readable->has(address)) {
      *value = machine::load_word(address);
      return 0;
    }
    return symbols::read_own_memory(OutsideHooks::in_hook(), address, value, sizeof *value)
               ? 0
               : -UNW_EINVAL;
  }

 private:
  bool has(std::uint64_t address) const noexcept {
    return holds(stack_.low, stack_.high, address) ||
           holds(registers_, registers_ + sizeof(Unwinder), address);
  }

  [[gnu::tls_model(
      "initial-exec")]] static inline constinit thread_local const Readable* t_readable = nullptr;
  const std::uint64_t registers_;
  const StackRange stack_;
};

std::uint64_t value_of(unw_cursor_t& cursor, int number) noexcept {
  unw_word_t value = 0;
  return unw_get_reg(&cursor, number, &value) == 0 ? value : 0;
}

}  // namespace

void start_odd_frames(InHook) noexcept {
  // A cache would need locks, and be stale after another library was loaded at the same address.
  unw_set_caching_policy(unw_local_addr_space, UNW_CACHE_NONE);
  unw_get_accessors(unw_local_addr_space)->access_mem = Readable::access;
  // The first use initializes, with system calls. Static: on aarch64 it is larger than a hook's
  // frame may be.
  static Unwinder first;
  unw_getcontext(&first.context);
  unw_init_local(&first.cursor, &first.context);
}

bool has_stack_for_libunwind(InHook hook, const StackRange& bounds) noexcept {
  const auto here = reinterpret_cast<std::uint64_t>(__builtin_frame_address(0));
  if (here >= bounds.low && here - bounds.low >= kStackNeeded) return true;
  return bounds.kind == StackKind::probed && here + kStackNeeded >= bounds.low &&
         readable_end(hook, here - kStackNeeded, bounds.low) == bounds.low;
}

bool step_odd_frame(InHook hook, ThreadStacks& thread, const StackRange& bounds,
                    const FrameState& frame, FrameState& next) noexcept {
  if (!has_stack_for_libunwind(hook, bounds)) return false;
  Unwinder& unwinder = *reinterpret_cast<Unwinder*>(thread.unwinder);
  const Readable readable(unwinder, bounds);
  unw_getcontext(&unwinder.context);
  if (unw_init_local(&unwinder.cursor, &unwinder.context) != 0) return false;
  constexpr unsigned kFramesBelow = 64;
  for (unsigned steps = 0; steps < session::kMaxFrames + kFramesBelow; ++steps) {
    const bool there = value_of(unwinder.cursor, UNW_REG_SP) == frame.sp &&
                       value_of(unwinder.cursor, UNW_REG_IP) == frame.pc;
    const bool signal = there && unw_is_signal_frame(&unwinder.cursor) > 0;
    if (unw_step(&unwinder.cursor) <= 0) return false;
    if (!there) continue;
    next = {value_of(unwinder.cursor, UNW_REG_IP), value_of(unwinder.cursor, UNW_REG_SP),
            value_of(unwinder.cursor, machine::kDwarfBp), signal, false};
    return true;
  }
  return false;
}

}  // namespace oomrec::stack

// libunwind opens a pipe to probe addresses, and keeps it open. It gets none and needs none,
// because Readable::access checks addresses.
extern "C" int oomrec_unwind_pipe2(int* ends, int) {
  ends[0] = ends[1] = -1;
  return -1;
}
