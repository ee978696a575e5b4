// One thread of another process, stopped and continued by ptrace.
//
// The thread is seized, so nothing is sent to it. If this command ends at any time, the kernel lets
// the thread go on with the registers that it has then.
#pragma once

#include <sys/types.h>
#include <sys/user.h>

#include <cstdint>
#include <optional>

namespace oomrec::tools::processes {

enum class StopResult : std::uint8_t { stopped, busy, stopped_by_signal, ended };

class Tracee {
 public:
  explicit Tracee(pid_t thread) : thread_(thread) {}
  ~Tracee();
  Tracee(const Tracee&) = delete;
  Tracee& operator=(const Tracee&) = delete;

  pid_t thread() const { return thread_; }

  // 0, or an errno: ESRCH: the thread has ended; EPERM.
  int seize();

  // Stops the thread, wherever it is, even in a system call that waits. busy: it could not be
  // stopped in time, for example while it waits for a disk; it stops later, and is to be waited for
  // with stop() again.
  StopResult stop();

  // Lets the stopped thread go on. A system call that was interrupted goes on, too.
  bool resume();
  // The same, and gives the thread up.
  bool release();

  // Takes note of what has happened since resume(): passes signals on.
  enum class Event : std::uint8_t { none, crashed, ended, stopped_by_signal };
  Event poll();

  // While it is stopped.
  user_regs_struct registers() const { return registers_; }
  bool set_registers(const user_regs_struct& registers);
  bool set_blocked_signals(std::uint64_t mask);
  std::optional<std::uint64_t> blocked_signals() const;
  // Whether the thread is inside a sequence that the kernel restarts if it is interrupted.
  bool in_restartable_sequence() const;

 private:
  bool read_registers();
  // Waits for one change of state: true if there was one.
  bool wait_for_change(int& status, bool block) const;

  const pid_t thread_;
  bool seized_ = false;
  bool stopped_ = false;
  bool interrupted_ = false;  // asked to stop, and has not yet
  user_regs_struct registers_{};
};

// As the registers are after the kernel's own restart of an interrupted system call.
user_regs_struct with_restarted_call(user_regs_struct registers);

// Whether the stop woke the thread up in a system call. One that has got no processor since its
// call ended looks alike otherwise.
bool was_asleep(const user_regs_struct& registers);

// So that the kernel restarts the call even where it would give up (epoll_wait and others, which
// end with EINTR when their thread is stopped).
user_regs_struct with_call_to_restart(user_regs_struct registers);

}  // namespace oomrec::tools::processes
