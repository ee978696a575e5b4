/* 50 workers live at the same time: each holds 4 MiB, half of them free inherited blocks. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void work(int number, char* inherited, int until) {
  char* blocks[40];
  for (int i = 0; i < 40; ++i) {
    blocks[i] = malloc(100000 + (size_t)i);
    memset(blocks[i], 2, 100000);
  }
  char end;
  if (read(until, &end, 1) != 0) exit(9);
  for (int i = 0; i < 40; ++i) free(blocks[i]);
  if (number % 2 != 0) free(inherited);
  exit(number % 3);
}

int main(void) {
  char* inherited = malloc(20 << 20);
  memset(inherited, 1, 20 << 20);
  int until[2];
  if (pipe(until) != 0) return 1;
  for (int i = 0; i < 50; ++i) {
    if (fork() == 0) {
      close(until[1]);
      work(i, inherited, until[0]);
    }
  }
  close(until[1]);
  int ended = 0, sum = 0;
  for (int status; wait(&status) > 0; ++ended) sum += WEXITSTATUS(status);
  printf("%d ended %d\n", ended, sum);
}
