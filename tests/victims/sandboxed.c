/* Enters a sandbox that kills on all but a few system calls, then holds 64 MiB and requests too
 * much. Arguments: how the filter is set, "prctl" or "syscall"; optionally a program to start
 * instead, under a filter that allows everything, as in a container. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <malloc.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "tests/victims/impossible_sizes.h"

#define ALLOW(name)                                      \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_##name, 0, 1), \
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)

/* clang-format off */
static struct sock_filter own_few[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
    ALLOW(brk), ALLOW(mmap), ALLOW(munmap), ALLOW(mprotect), ALLOW(write), ALLOW(exit_group),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
};
/* clang-format on */
static struct sock_filter all[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};

#define PROGRAM(rules) \
  { sizeof(rules) / sizeof *(rules), rules }
static struct sock_fprog sandbox = PROGRAM(own_few), container = PROGRAM(all);

static void enter(struct sock_fprog* filter, const char* how) {
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  const long result = strcmp(how, "syscall") == 0
                          ? syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, filter)
                          : prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, filter);
  if (result != 0) exit(77);
}

int main(int count, char** arguments) {
  if (count > 2) {
    enter(&container, arguments[1]);
    execv(arguments[2], arguments + 2);
  }
  static char* blocks[200];
  mallopt(M_ARENA_MAX, 1); /* otherwise glibc counts the CPUs after a failure */
  enter(&sandbox, count > 1 ? arguments[1] : "prctl");
  for (int i = 0; i < 64; ++i) memset(blocks[i] = malloc(1 << 20), 1, 1 << 20);
  for (int i = 0; i < 200000; ++i) {
    free(blocks[i % 100 + 100]);
    blocks[i % 100 + 100] = malloc((size_t)(i % 4000) + 1);
  }
  char* volatile refused = malloc(TOO_MUCH + 163);
  static const char words[] = "lives\n";
  return refused == NULL && write(1, words, sizeof words - 1) > 0 ? 3 : 1;
}
