// Proof that code runs inside a hook, as a type.
//
// Inside a hook the program may hold any lock and have no memory left. A function that takes
// `InHook` promises: it may not allocate, lock what the program or the loader may hold, throw,
// enter the loader, or change errno; it uses little stack and calls only functions that promise the
// same, or raw system calls. Only HookScope makes an InHook; it is an empty class, so passing it is
// free.
#pragma once

#include <atomic>
#include <cerrno>

namespace oomrec {

class InHook {
  friend class HookScope;
  friend class QuickScope;
  friend class OutsideHooks;
  InHook() noexcept {}
};

// What this thread is doing when a hook is entered.
enum class HookState : unsigned char {
  idle,      // in the program's own code
  real,      // in the real function that a hook called: what it calls is part of that call
  kernel,    // in a real mapping call: a heap event seen now comes from a signal handler, too
  recorder,  // in the recorder: a call seen now comes from a signal handler of the program
};

class HookScope {
 public:
  // In the hook itself: stacks begin at the caller of the function that makes the outermost scope.
  [[gnu::always_inline]] explicit HookScope(HookState real = HookState::real) noexcept
      : before_(t_state), real_(real) {
    t_state = real;
    // In this order: a handler's hook in between must find us at work, and leave the frame alone.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (outermost()) t_frame = __builtin_frame_address(0);
  }
  ~HookScope() { t_state = before_; }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  // True when no hook is entered on this thread: a scope made now will be outermost().
  static bool idle() noexcept { return t_state == HookState::idle; }

  // True when the program itself made this call. A call that is not outermost is passed on and gets
  // no stack; see interrupted_recorder().
  bool outermost() const noexcept { return before_ == HookState::idle; }

  // True when a signal handler allocates while the recorder or the kernel works: counted in the
  // totals, no more, so that every block is counted at both of its ends or at neither.
  bool interrupted_recorder() const noexcept {
    return before_ == HookState::recorder || before_ == HookState::kernel;
  }

  // The frame of that function, by its frame pointer: the caller's bp, then the return address.
  // Null unless the recorder is at work.
  static const void* frame() noexcept { return t_state == HookState::recorder ? t_frame : nullptr; }

  // From here to the end of the scope the recorder is at work, no longer the real function.
  InHook in_hook() const noexcept {
    t_state = HookState::recorder;
    return {};
  }

  // Back to the real function: for hooks that record before the real call.
  void leave_recorder() const noexcept { t_state = real_; }

 private:
  friend class QuickScope;

  // initial-exec: the first access must not allocate, nor one during the thread's TLS destructors.
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local HookState t_state =
      HookState::idle;
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local const void* t_frame =
      nullptr;
  const HookState before_;
  const HookState real_;
};

// The same for an outermost call that changes totals and no more, made where HookScope::idle(): it
// does not say where stacks begin, and none may be captured in it.
class QuickScope {
 public:
  QuickScope() noexcept { HookScope::t_state = HookState::real; }
  ~QuickScope() { HookScope::t_state = HookState::idle; }
  QuickScope(const QuickScope&) = delete;
  QuickScope& operator=(const QuickScope&) = delete;

  InHook in_hook() const noexcept {
    HookScope::t_state = HookState::recorder;
    return {};
  }
  void leave_recorder() const noexcept { HookScope::t_state = HookState::real; }
};

// The same functions called where no hook is active: by the tools, by unit tests, and by the
// library's constructor. The promise of InHook is stronger than what these callers need.
class OutsideHooks {
 public:
  static InHook in_hook() noexcept { return {}; }
};

// errno survives the scope.
class KeepErrno {
 public:
  KeepErrno() noexcept : value_(errno) {}
  ~KeepErrno() { errno = value_; }
  KeepErrno(const KeepErrno&) = delete;
  KeepErrno& operator=(const KeepErrno&) = delete;
  int value() const noexcept { return value_; }

 private:
  const int value_;
};

}  // namespace oomrec
