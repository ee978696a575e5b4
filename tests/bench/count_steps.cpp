// count_steps PROGRAM [ARGUMENT…]: how many instructions PROGRAM executes between two SIGSTOPs that
// it sends to itself, by single steps. It stops so again and again, and the least count is printed:
// steps are so slow that what the recorder does ten times a second falls into some of them. A count
// that is longer than the least is not counted to its end, and three of the least are enough. A
// system call is one instruction, and so is each repetition of a string instruction.
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>

namespace {

int fail(const char* what) {
  std::perror(what);
  return 1;
}

}  // namespace

int main(int, char** argv) {
  if (argv[1] == nullptr) return 2;
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) == 0) execvp(argv[1], argv + 1);
    _exit(127);
  }
  unsigned long steps = 0, least = ~0ul;
  unsigned times = 0;  // that the least was counted
  bool counting = false;
  for (;;) {
    int status = 0;
    if (waitpid(child, &status, 0) != child) return fail("waitpid");
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0 && least != ~0ul) break;
    if (!WIFSTOPPED(status)) {
      std::fprintf(stderr, "the program ended: status %#x\n", static_cast<unsigned>(status));
      return 1;
    }
    ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_EXITKILL);
    const int signal = WSTOPSIG(status);
    if (signal == SIGSTOP) {
      if (counting && steps <= least) {
        times = steps == least ? times + 1 : 1;
        least = steps;
        if (times == 3) break;
      }
      counting = !counting;
      steps = 0;
    } else if (counting && signal == SIGTRAP) {
      ++steps;
    }
    const long pass_on = signal == SIGSTOP || signal == SIGTRAP ? 0 : signal;
    const bool may_be_least = counting && steps <= least;
    if (ptrace(may_be_least ? PTRACE_SINGLESTEP : PTRACE_CONT, child, nullptr, pass_on) != 0)
      return fail("ptrace");
  }
  std::printf("figure: %lu\n", least);
}
