/* Prints a program's view of its signal handlers, before and after a failed allocation. `own`: it
 * installs a SIGSEGV handler at start; `later`: after the failure, restores the previous one, and
 * crashes. Both handlers print a line and exit with 7.
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "impossible_sizes.h"

static void on_segv(int number) {
  (void)number;
  if (write(1, "mine\n", 5) != 5) _exit(1);
  _exit(7);
}

static void show(const char* when) {
  static const int kSignals[] = {SIGSEGV, SIGBUS, SIGABRT, SIGILL, SIGTRAP};
  printf("%s:", when);
  for (size_t i = 0; i < sizeof kSignals / sizeof *kSignals; ++i) {
    struct sigaction now;
    memset(&now, 0xff, sizeof now);
    sigaction(kSignals[i], NULL, &now);
    printf(" %s flags %x", now.sa_handler == SIG_DFL ? "default" : "handler",
           (unsigned)now.sa_flags);
  }
  stack_t stack;
  sigaltstack(NULL, &stack);
  printf(", stack %d\n", stack.ss_flags);
  fflush(stdout);
}

/* From the kernel, for comparison. */
static void show_caught(const char* when) {
  char line[256];
  FILE* const status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status) != NULL)
    if (strncmp(line, "SigCgt", 6) == 0) fprintf(stderr, "%s %s", when, line);
  fclose(status);
}

int main(int count, char** words) {
  const char* const way = count > 1 ? words[1] : "";
  if (strcmp(way, "own") == 0) signal(SIGSEGV, on_segv);
  show("before");
  show_caught("before");
  volatile char* const block = malloc(TOO_MUCH + 229);
  show("after");
  show_caught("after");
  if (strcmp(way, "later") == 0) {
    void (*const before)(int) = signal(SIGSEGV, on_segv);
    printf("signal says %s\n", before == SIG_DFL ? "default" : "handler");
    printf("and then %s\n", signal(SIGSEGV, before) == on_segv ? "mine" : "another");
    show("at last");
  }
  block[0] = 1;
  return 9;
}
