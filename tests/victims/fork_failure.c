/* A limit of tasks: fork fails with EAGAIN. Root is exempt, so it becomes nobody. */
#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void) {
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0)) return 77;
  const pid_t child = fork();
  if (child == 0) _exit(0);
  printf("%d EAGAIN %d\n", child, errno == EAGAIN);
}
