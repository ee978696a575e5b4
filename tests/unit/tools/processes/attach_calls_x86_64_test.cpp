// How a stop in a system call is undone on x86-64.
#include <doctest/doctest.h>
#include <sys/syscall.h>

#include <cerrno>

#include "common/machine/thread_registers.h"

using oomrec::machine::ThreadRegisters;

namespace {

ThreadRegisters in_call(long number, long result) {
  ThreadRegisters thread;
  user_regs_struct& registers = thread.raw();
  registers.orig_rax = static_cast<unsigned long long>(number);
  registers.rax = static_cast<unsigned long long>(result);
  registers.rip = 0x1002;
  return thread;
}

// As the stop leaves them.
ThreadRegisters stopped_in(long number, long result) {
  ThreadRegisters thread = in_call(number, result);
  thread.restart_call({});
  return thread;
}

}  // namespace

TEST_CASE("an interrupted call is repeated by its own instruction") {
  for (const long restart : {-512L, -513L, -514L}) {
    const user_regs_struct after = in_call(SYS_read, restart).restarted().raw();
    CHECK(after.rax == SYS_read);
    CHECK(after.rip == 0x1000);
  }
}

TEST_CASE("a call with a time is resumed, not repeated") {
  const user_regs_struct after = in_call(SYS_clock_nanosleep, -516).restarted().raw();
  CHECK(after.rax == SYS_restart_syscall);
  CHECK(after.rip == 0x1000);
}

TEST_CASE("a call that has returned stays so") {
  for (const long result : {0L, 17L, -static_cast<long>(EINTR)}) {
    const user_regs_struct after = in_call(SYS_read, result).restarted().raw();
    CHECK(after.rax == static_cast<unsigned long long>(result));
    CHECK(after.rip == 0x1002);
  }
}

TEST_CASE("a stop tells whether the thread was asleep in a call") {
  for (const long restart : {-512L, -514L, -516L, -static_cast<long>(EINTR)})
    CHECK(in_call(SYS_wait4, restart).was_asleep());
  for (const long result : {0L, 17L, -static_cast<long>(ENOMEM)})
    CHECK_FALSE(in_call(SYS_mmap, result).was_asleep());
  CHECK_FALSE(in_call(-1, -512).was_asleep());
}

TEST_CASE("a stop does not end epoll_wait with EINTR") {
  const ThreadRegisters stopped = stopped_in(SYS_epoll_wait, -EINTR);
  CHECK(static_cast<long>(stopped.raw().rax) == -514);
  CHECK(stopped.restarted().pc() == 0x1000);
  SUBCASE("but a call that a handler has interrupted does end so") {
    CHECK(static_cast<long>(stopped_in(SYS_read, -EINTR).raw().rax) == -EINTR);
  }
  SUBCASE("nor is one repeated that has a result") {
    CHECK(stopped_in(SYS_epoll_wait, 3).raw().rax == 3);
  }
}
