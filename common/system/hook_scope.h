// Marks code that runs inside a hook, as a type and for the thread.
//
// Inside a hook the program may hold any lock and have no memory left. A function that takes an
// `InHook` promises not to allocate, not to take a lock that the program or the loader may hold,
// not to throw, not to enter the loader, and not to change errno. It uses little stack and calls
// only functions with the same promise, or raw system calls. Only a HookScope creates an InHook; it
// is an empty class, so passing it is free.
#pragma once

#include <atomic>
#include <cerrno>

#include "common/machine/frames.h"

namespace oomrec {

class InHook {
  friend class HookScope;
  friend class QuickScope;
  friend class ExactScope;
  friend class OutsideHooks;
  InHook() noexcept {}
};

// What this thread was doing when a hook was entered.
enum class HookState : unsigned char {
  idle,      // in the program's own code
  real,      // in the real function that a hook called: nested calls are part of that call
  kernel,    // in a real mapping call: a heap event now comes from a signal handler, too
  recorder,  // in the recorder: a call now comes from a signal handler of the program
};

class HookScope {
 public:
  // Create it in the hook itself: stacks start at the caller of the function that creates the
  // outermost scope.
  [[gnu::always_inline]] explicit HookScope(HookState real = HookState::real) noexcept
      : before_(t_now.state), real_(real) {
    t_now.state = real;
    // In this order: the hook of a signal handler in between must see this scope and leave the
    // frame alone.
    std::atomic_signal_fence(std::memory_order_seq_cst);
    if (outermost()) t_now.frame = machine::CalleeFrame::here();
  }
  ~HookScope() { t_now.state = before_; }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

  // True if this thread is in no hook: a scope created now would be outermost().
  static bool idle() noexcept { return t_now.state == HookState::idle; }

  // True if the program itself made this call. Other calls are passed on without recording a stack;
  // see interrupted_recorder().
  bool outermost() const noexcept { return before_ == HookState::idle; }

  // True if a signal handler allocates while the recorder or the kernel works. Such a block is
  // counted in the totals only, so that every block is counted at both its allocation and its
  // release, or at neither.
  bool interrupted_recorder() const noexcept {
    return before_ == HookState::recorder || before_ == HookState::kernel;
  }

  // The frame of the function with the outermost scope. None unless the recorder is working.
  static machine::CalleeFrame frame() noexcept {
    return t_now.state == HookState::recorder ? t_now.frame : machine::CalleeFrame{};
  }

  // From here to the end of the scope the recorder is working, no longer the real function.
  InHook in_hook() const noexcept {
    t_now.state = HookState::recorder;
    return {};
  }

  // Returns to the real function, for hooks that record before the real call.
  void leave_recorder() const noexcept { t_now.state = real_; }

 private:
  friend class QuickScope;
  friend class ExactScope;

  // One variable, because each has a word to be read for its place.
  struct Now {
    HookState state;
    machine::CalleeFrame frame;
  };
  // initial-exec: the first access must not allocate, nor one during the thread's TLS destructors.
  [[gnu::tls_model("initial-exec")]] static inline constinit thread_local Now t_now{HookState::idle,
                                                                                    {}};
  const HookState before_;
  const HookState real_;
};

// A cheaper scope for an outermost call that only changes totals, created if HookScope::idle(). It
// does not set where stacks start, so none may be captured in it.
class QuickScope {
 public:
  QuickScope() noexcept { HookScope::t_now.state = HookState::real; }
  ~QuickScope() { HookScope::t_now.state = HookState::idle; }
  QuickScope(const QuickScope&) = delete;
  QuickScope& operator=(const QuickScope&) = delete;

  InHook in_hook() const noexcept {
    HookScope::t_now.state = HookState::recorder;
    return {};
  }
  void leave_recorder() const noexcept { HookScope::t_now.state = HookState::real; }
};

// For recording after an outermost call, created if HookScope::idle(). Stacks start at the caller
// of the function that creates it.
class ExactScope {
 public:
  [[gnu::always_inline]] ExactScope() noexcept {
    HookScope::t_now.state = HookState::recorder;
    std::atomic_signal_fence(std::memory_order_seq_cst);  // as in HookScope
    HookScope::t_now.frame = machine::CalleeFrame::here();
  }
  ~ExactScope() { HookScope::t_now.state = HookState::idle; }
  ExactScope(const ExactScope&) = delete;
  ExactScope& operator=(const ExactScope&) = delete;

  InHook in_hook() const noexcept { return {}; }
};

// For calling the same functions outside hooks: in the tools, in unit tests, and in the library's
// constructor. They need less than what InHook promises.
class OutsideHooks {
 public:
  static InHook in_hook() noexcept { return {}; }
};

// Restores errno at the end of the scope.
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
