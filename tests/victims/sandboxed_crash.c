/* Fails an allocation, enters a sandbox that kills on any system call, and crashes. */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "impossible_sizes.h"

int main(void) {
  volatile char* const block = malloc(TOO_MUCH + 239);
  struct sock_filter none[] = {BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)};
  const struct sock_fprog sandbox = {1, none};
  prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &sandbox) != 0) exit(77);
  block[0] = 1;
}
