#include "recorder/bundle/command.h"

#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include <cerrno>
#include <cstring>
#include <string_view>

#include "recorder/bundle/system.h"
#include "recorder/bundle/text.h"

namespace oomrec::bundle {
namespace {

constexpr std::string_view kKept[] = {"PATH=", "HOME=", "USER=", "LANG=", "TMPDIR="};
constexpr std::string_view kStandardPath =
    "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

long address(const void* pointer) noexcept { return reinterpret_cast<long>(pointer); }

// The child shares our memory and not our handlers: the program's must not run in it.
void forget_handlers() noexcept {
  struct {
    void (*handler)(int) = SIG_DFL;
    unsigned long flags = 0;
    void (*restorer)() = nullptr;
    std::uint64_t mask = 0;
  } by_default;
  for (int signal = 1; signal <= 64; ++signal)
    sys::call(SYS_rt_sigaction, signal, address(&by_default), 0, 8);
  const std::uint64_t none = 0;
  sys::call(SYS_rt_sigprocmask, SIG_SETMASK, address(&none), 0, 8);
}

[[noreturn]] void become_shell(void* argument) noexcept {
  auto& space = *static_cast<CommandSpace*>(argument);
  forget_handlers();
  // The helper has closed all but fd 2.
  sys::call(SYS_openat, AT_FDCWD, address("/dev/null"), O_RDONLY);
  sys::call(SYS_dup3, 2, 1, 0);
  const char* const words[] = {"sh", "-c", space.text, nullptr};
  sys::call(SYS_execve, address("/bin/sh"), address(words), address(space.environment));
  for (;;) sys::call(SYS_exit, 127);
}

// The child runs become_shell(space) on a stack of its own; we stand still until its exec. Its pid,
// or minus an errno.
long clone_shell(CommandSpace& space) noexcept {
  long result = SYS_clone;
  register long child_word asm("r10") = 0;
  register long tls asm("r8") = 0;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "xor %%ebp, %%ebp\n\t"
      "mov %[argument], %%rdi\n\t"
      "call *%[run]\n\t"
      "hlt\n"
      "1:"
      : "+a"(result)
      : "D"(static_cast<long>(CLONE_VM | CLONE_VFORK | SIGCHLD)),
        "S"(space.stack + sizeof space.stack), "d"(0L), "r"(child_word),
        "r"(tls), [argument] "r"(&space), [run] "r"(&become_shell)
      : "rcx", "r11", "memory", "cc");
  return result;
}

}  // namespace

void keep_environment(const char* const* environment, CommandSpace& space) noexcept {
  std::size_t used = 0, count = 0;
  const auto keep = [&](std::string_view variable) {
    if (used + variable.size() + 1 > sizeof space.variables) return;
    std::memcpy(space.variables + used, variable.data(), variable.size());
    space.variables[used + variable.size()] = '\0';
    space.environment[count++] = space.variables + used;
    used += variable.size() + 1;
  };
  bool has_path = false;
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    const std::string_view variable{*environment};
    for (const std::string_view kept : kKept) {
      if (!variable.starts_with(kept) || count >= std::size(kKept)) continue;
      keep(variable);
      has_path = has_path || kept == kKept[0];
    }
  }
  if (!has_path) keep(kStandardPath);
  space.environment[count] = nullptr;
}

bool expand_command(const char* pattern, int pid, const char* bundle,
                    CommandSpace& space) noexcept {
  Text text{space.text};
  for (const char* at = pattern; *at != '\0'; ++at) {
    const char word = *at == '%' ? at[1] : '\0';
    if (word == 'p') {
      text.signed_number(pid);
    } else if (word == 'b') {
      text.add(bundle);
    } else {
      text.add(*at);
    }
    if (word == 'p' || word == 'b' || word == '%') ++at;
  }
  return !text.truncated();
}

void run_command(CommandSpace& space, unsigned seconds) noexcept {
  constexpr std::uint64_t kSecond = 1'000'000'000;
  const std::uint64_t deadline = sys::monotonic_ns() + seconds * kSecond;
  const long child = clone_shell(space);
  if (child < 0) return;
  const timespec pause{0, 5'000'000};
  while (sys::call(SYS_wait4, child, 0, WNOHANG) == 0 && sys::monotonic_ns() < deadline)
    sys::call(SYS_nanosleep, address(&pause));
}

}  // namespace oomrec::bundle
