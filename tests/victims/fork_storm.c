/* 300 children, some of which allocate, some of which fork again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

int main(void) {
  int ended = 0;
  for (int i = 0; i < 300; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      char* block = malloc(i % 10 == 0 ? 3 << 20 : 100);
      memset(block, 1, 100);
      if (i % 7 == 0 && fork() == 0) _exit(0);
      while (wait(NULL) > 0) continue;
      free(block);
      exit(i % 3);
    }
    if (i % 5 == 4)
      for (int status; wait(&status) > 0;) ended += WIFEXITED(status);
  }
  for (int status; wait(&status) > 0;) ended += WIFEXITED(status);
  printf("%d ended\n", ended);
}
