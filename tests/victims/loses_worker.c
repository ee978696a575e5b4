/* A master with two workers that hold 24 MiB. One grows until it is killed, or with `rest` prints
 * "ready PID" and waits to be killed. The master then ends the other worker and exits with 1, or
 * with `copes` 0; with `stays` it holds 24 MiB itself, prints "ready PID" of its own and goes on.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { PIECE = 1 << 20 };

__attribute__((noinline)) static void grow(int pieces) {
  for (int i = 0; i < pieces; ++i) {
    char* const piece = malloc(PIECE);
    if (piece != NULL) memset(piece, 1, PIECE);
  }
}

/* The kernel must choose the growing worker. */
static void offer_oneself(void) {
  FILE* const file = fopen("/proc/self/oom_score_adj", "w");
  if (file == NULL) return;
  fputs("500", file);
  fclose(file);
}

static void work(int grows) {
  if (grows) offer_oneself();
  do grow(24);
  while (grows);
  for (;;) pause();
}

int main(int count, char** words) {
  const int rests = count > 1 && strcmp(words[1], "rest") == 0;
  const int copes = count > 1 && strcmp(words[count - 1], "copes") == 0;
  pid_t workers[2];
  for (int i = 0; i < 2; ++i) {
    workers[i] = fork();
    if (workers[i] == 0) work(i == 1 && !rests);
  }
  if (rests) {
    printf("ready %d\n", (int)workers[1]);
    fflush(stdout);
  }
  int status;
  const pid_t lost = wait(&status);
  kill(workers[lost == workers[0]], SIGTERM);
  wait(NULL);
  if (count > 1 && strcmp(words[1], "stays") == 0) {
    grow(24);
    printf("ready %d\n", (int)getpid());
    fflush(stdout);
    for (;;) pause();
  }
  return copes || !WIFSIGNALED(status) ? 0 : 1;
}
