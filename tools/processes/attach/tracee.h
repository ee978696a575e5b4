// One thread of another process, stopped and continued by ptrace.
//
// The thread is seized, so nothing is sent to it. If this command ends at any time, the kernel lets
// the thread go on with the registers that it has then.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "common/machine/thread_registers.h"

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
  // Of a call that would end with EINTR because of the stop, those with which it is restarted.
  const machine::ThreadRegisters& registers() const { return registers_; }
  bool set_registers(const machine::ThreadRegisters& registers);
  bool set_blocked_signals(std::uint64_t mask);
  std::optional<std::uint64_t> blocked_signals() const;
  // Whether the thread is inside a sequence that the kernel restarts if it is interrupted.
  bool in_restartable_sequence() const;

 private:
  machine::InterruptedCall waiting_call() const;
  // After a stop that has interrupted this call.
  bool read_registers(const machine::InterruptedCall& call);
  // After a stop for which stop() has not waited.
  void restart_call() const;
  // Waits for one change of state: true if there was one.
  bool wait_for_change(int& status, bool block) const;

  const pid_t thread_;
  bool seized_ = false;
  bool stopped_ = false;
  bool interrupted_ = false;                   // asked to stop, and has not yet
  machine::InterruptedCall interrupted_call_;  // in which it was when it was asked
  machine::ThreadRegisters registers_;
};

// A process and its threads, as /proc says.

// Whether a thread, or a process of one thread, has ended or is a zombie.
bool has_ended(pid_t thread);

// Zombies, too.
std::vector<pid_t> threads_of(pid_t pid);

// Those that have not ended, first those that notice a stop least: one that sleeps is kept from
// nothing. Empty: the process has ended.
std::vector<pid_t> threads_by_cost(pid_t pid);

}  // namespace oomrec::tools::processes
