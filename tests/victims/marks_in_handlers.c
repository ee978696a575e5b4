/* A signal handler adds marks, at any instruction of a program that allocates. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/time.h>

#include "include/oomrec.h"

static volatile sig_atomic_t handled;

static void handler(int unused) {
  (void)unused;
  OOMREC_CALL(oomrec_mark, "tick");
  ++handled;
}

int main(void) {
  const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  sigaction(SIGALRM, &action, NULL);
  const struct itimerval often = {{0, 200}, {0, 200}};
  setitimer(ITIMER_REAL, &often, NULL);
  while (handled < 2000) free(malloc(100 + handled % 7));
  const struct itimerval never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &never, NULL);
  printf("%d\n", (int)handled);
  OOMREC_CALL(oomrec_dump, "done");
}
