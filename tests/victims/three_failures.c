/* Fails allocations on three stacks, and prints what it noticed: a child to wait for, a SIGCHLD,
 * a changed SIGABRT handler, and that its exit handlers ran.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "impossible_sizes.h"

static volatile sig_atomic_t child_signals;

static void on_child(int number) { child_signals += number != 0; }
static void on_abort(int number) { _exit(number + 50); }
static void at_end(void) { puts("exit handlers ran"); }

__attribute__((noinline)) static void refuse_again(void) {
  void* volatile block = malloc(TOO_MUCH + 157);
  if (block != NULL) abort();
}

__attribute__((noinline)) static void refuse_for_good(void) {
  void* volatile block = calloc(TOO_MUCH + 163, 1);
  if (block != NULL) abort();
}

int main(void) {
  signal(SIGCHLD, on_child);
  signal(SIGABRT, on_abort);
  atexit(at_end);
  puts("begun");
  fflush(stdout);
  void* volatile block = malloc(TOO_MUCH + 151);
  if (block != NULL) return 1;
  refuse_again();
  refuse_for_good();
  const int waited = waitpid(-1, NULL, WNOHANG);
  printf("children: %s, signals: %d\n", waited < 0 && errno == ECHILD ? "none" : "some",
         (int)child_signals);
  return 0;
}
