// How a stop in a system call is undone on aarch64, and the way back from the code.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <span>

#include "common/machine/code_writer.h"
#include "common/machine/tail_jump.h"
#include "common/machine/thread_registers.h"
#include "tools/processes/attach/machine_code.h"

using namespace oomrec::machine;
using namespace oomrec::tools::processes;

namespace {

constexpr std::uint64_t kArguments[6] = {5, 6, 7, 8, 9, 10};

ThreadRegisters behind_call(long number, long result) {
  ThreadRegisters thread;
  for (int i = 0; i < 6; ++i) thread.raw().regs[i] = kArguments[i];
  thread.raw().regs[0] = static_cast<unsigned long long>(result);
  thread.raw().regs[8] = static_cast<unsigned long long>(number);
  thread.raw().pc = 0x1004;
  thread.raw().sp = 0x7000;
  thread.set_call(false, true);
  return thread;
}

InterruptedCall seen_before(long number) {
  InterruptedCall call;
  call.number = number;
  std::memcpy(call.words, kArguments, sizeof call.words);
  call.sp = 0x7000;
  call.pc = 0x1004;
  return call;
}

// --- The code, run by this thread ---

constexpr std::uint64_t kScratchAt = 0x3'0000'0000;
alignas(4096) char g_code[4096];  // near to what it returns to
int g_argument;
int g_calls;

const char* called(void* argument) {
  if (argument == &g_argument) ++g_calls;
  errno = 99;
  asm volatile("movi v8.16b, #1\n\tmovi v17.16b, #2" ::: "v8", "v17");
  return nullptr;
}

// Goes on in the code, which is to give the thread back as it was.
void redirect(int, siginfo_t*, void* of) {
  auto& machine = static_cast<ucontext_t*>(of)->uc_mcontext;
  ThreadRegisters after;
  std::memcpy(after.raw().regs, machine.regs, sizeof machine.regs);
  after.raw().sp = machine.sp;
  after.raw().pc = machine.pc;
  after.raw().pstate = machine.pstate;
  RemoteCall call;
  call.errno_location = reinterpret_cast<std::uint64_t>(&__errno_location);
  call.function = reinterpret_cast<std::uint64_t>(&called);
  call.argument = reinterpret_cast<std::uint64_t>(&g_argument);
  const auto way = reinterpret_cast<std::uint64_t>(g_code);
  const auto last = way_back(after, way);
  const MachineCode code = code_of(call, kScratchAt, after, 0, way);
  std::memcpy(g_code, last.data(), last.size());
  std::memcpy(g_code + 64, code.bytes.data(), code.bytes.size());
  __builtin___clear_cache(g_code, g_code + 4096);
  machine.pc = way + 64 + sizeof(CodeHeader);
}

}  // namespace

TEST_CASE("a stop does not end epoll_pwait with EINTR") {
  ThreadRegisters thread = behind_call(SYS_epoll_pwait, -EINTR);
  CHECK(thread.restart_call(seen_before(SYS_epoll_pwait)));
  CHECK(thread.pc() == 0x1000);
  CHECK(thread.raw().regs[0] == 5);
  CHECK(thread.was_asleep());
}

TEST_CASE("a call is not repeated") {
  ThreadRegisters thread = behind_call(SYS_epoll_pwait, -EINTR);
  InterruptedCall call = seen_before(SYS_epoll_pwait);
  SUBCASE("that is another one than before the stop") { call.words[2] = 17; }
  SUBCASE("that was made elsewhere") { call.sp = 0x7010; }
  SUBCASE("that has a result") { thread = behind_call(SYS_epoll_pwait, 3); }
  SUBCASE("that a handler has interrupted") {
    thread = behind_call(SYS_read, -EINTR);
    call = seen_before(SYS_read);
  }
  CHECK_FALSE(thread.restart_call(call));
  CHECK(thread.pc() == 0x1004);
}

TEST_CASE("a line of /proc/PID/syscall is read") {
  const auto call = InterruptedCall::of("22 0x5 0x6 0x7 0x8 0x9 0xa 0xffffc0 0xaaab04\n");
  CHECK(call.number == 22);
  CHECK(call.words[5] == 10);
  CHECK(call.sp == 0xffffc0);
  CHECK(call.pc == 0xaaab04);
  CHECK(InterruptedCall::of("running\n").number == -1);
}

TEST_CASE("the code calls, and gives the thread back as it was") {
  REQUIRE(mprotect(g_code, sizeof g_code, PROT_READ | PROT_WRITE | PROT_EXEC) == 0);
  struct sigaction action {};
  action.sa_sigaction = redirect;
  action.sa_flags = SA_SIGINFO;
  sigaction(SIGUSR1, &action, nullptr);
  errno = 77;
  const auto process = static_cast<std::uint64_t>(getpid());
  std::uint64_t result = 1;
  std::uint64_t first = 0, second = 0, third = 0, low = 0, high = 0, flags = 0;
  asm volatile(
      "mov x16, #161\n\tmov x17, #171\n\tmov x18, #181\n\t"
      "movi v8.16b, #7\n\tmovi v17.16b, #9\n\tcmp xzr, xzr\n\t"
      "mov x0, %[process]\n\tmov x1, %[signal]\n\tmov x8, %[kill]\n\tsvc #0\n\t"
      "mov %[result], x0\n\t"
      "mrs %[flags], nzcv\n\tmov %[first], x16\n\tmov %[second], x17\n\tmov %[third], x18\n\t"
      "umov %[low], v8.d[0]\n\tumov %[high], v17.d[1]"
      : [result] "=&r"(result), [first] "=&r"(first), [second] "=&r"(second), [third] "=&r"(third),
        [low] "=&r"(low), [high] "=&r"(high), [flags] "=&r"(flags)
      : [process] "r"(process), [signal] "i"(SIGUSR1), [kill] "i"(SYS_kill)
      : "x0", "x1", "x8", "x16", "x17", "x18", "v8", "v17", "memory", "cc");
  CHECK(result == 0);
  CHECK(g_calls == 1);
  CHECK(errno == 77);
  CHECK(first == 161);
  CHECK(second == 171);
  CHECK(third == 181);
  CHECK(low == 0x0707070707070707);
  CHECK(high == 0x0909090909090909);
  CHECK((flags >> 30 & 1) == 1);  // equal
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, nullptr, &blocked);
  CHECK(sigismember(&blocked, SIGUSR2) == 0);
  CHECK(mprotect(reinterpret_cast<void*>(kScratchAt), 4096, PROT_READ) != 0);  // it is unmapped
}

TEST_CASE("the jump out of a function is found") {
  constexpr std::uint32_t kFunction[] = {0xd2800001, 0x14000400, 0x14000001, 0xd65f03c0};
  std::uint64_t found = 0;
  int count = 0;
  for_each_tail_jump({reinterpret_cast<const std::uint8_t*>(kFunction), sizeof kFunction}, 0x10000,
                     [&](std::uint64_t target) {
                       found = target;
                       ++count;
                     });
  CHECK(count == 1);
  CHECK(found == 0x11004);
}
