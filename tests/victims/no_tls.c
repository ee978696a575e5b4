/* A helper as sandboxes start it: a clone child in the parent's memory, with empty thread-local
 * storage that begins where readable memory ends. `exit`, `syscall` or `run` is how it
 * ends; `map` first maps memory and more. The program exits with 0 if the helper ended as it
 * should.
 */
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PAGE = 4096, STATUS = 7 };

__attribute__((no_stack_protector)) static int helper(void* way) {
  const char first = *(const char*)way;
  char* const words[] = {"true", NULL};
  if (first == 'm') {
    char* const memory = mmap(NULL, 4 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(memory, PAGE, PROT_READ | PROT_WRITE);
    *memory = 1;
    mlock(memory, PAGE);
    prctl(PR_GET_DUMPABLE, 0, 0, 0, 0);
    sigaltstack(NULL, NULL);
    munmap(mremap(memory, 4 * PAGE, PAGE, 0), PAGE);
  }
  if (first == 'e' || first == 'm') _exit(STATUS);
  if (first == 's') syscall(SYS_exit_group, STATUS);
  execv("/bin/true", words);
  return 1;
}

int main(int count, char** words) {
  char* const way = count > 1 ? words[1] : "exit";
  const long page = sysconf(_SC_PAGESIZE);
  char* const memory = mmap(NULL, 2 * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  char* const stack = malloc(1 << 16);
#ifdef __aarch64__ /* variables lie above the thread pointer, behind two words of the C library */
  mprotect(memory, page, PROT_READ | PROT_WRITE);
  char* const storage = memory + page - 16;
#else
  mprotect(memory + page, page, PROT_READ | PROT_WRITE);
  char* const storage = memory + page;
#endif
  const int flags = CLONE_VM | CLONE_VFORK | CLONE_SETTLS | SIGCHLD;
  const int pid = clone(helper, stack + (1 << 16), flags, way, NULL, storage, NULL);
  int status = 0;
  if (pid < 0 || waitpid(pid, &status, 0) != pid) return 2;
  const int expected = strcmp(way, "run") == 0 ? 0 : STATUS;
  printf("the helper ended with %d, signal %d\n", WEXITSTATUS(status), WTERMSIG(status));
  return !(WIFEXITED(status) && WEXITSTATUS(status) == expected);
}
