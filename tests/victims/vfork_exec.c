/* vfork, then _exit in one child and exec in another, both in this process' memory. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "impossible_sizes.h"

int main(void) {
  int status[3] = {-1, -1, -1};
  pid_t child = vfork();
  if (child == 0) _exit(3);
  waitpid(child, &status[0], 0);
  child = vfork();
  if (child == 0) {
    execl("/bin/sh", "sh", "-c", "exit 4", (char*)NULL);
    _exit(127);
  }
  waitpid(child, &status[1], 0);
  child = vfork();
  if (child == 0) {
    execlp("no-such-program", "no-such-program", (char*)NULL);
    _exit(5);
  }
  waitpid(child, &status[2], 0);
  void* volatile block = malloc(TOO_MUCH + 149);
  printf("%d %d %d %p\n", WEXITSTATUS(status[0]), WEXITSTATUS(status[1]), WEXITSTATUS(status[2]),
         block);
}
