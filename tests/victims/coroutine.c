/* Fails on a stack that it made itself. */
#include <stdio.h>
#include <stdlib.h>
#include <ucontext.h>

#include "impossible_sizes.h"

static ucontext_t caller, routine;
static void* volatile block = &caller;

__attribute__((noinline)) static void fail_in_coroutine(void) { block = malloc(TOO_MUCH + 157); }
static void run(void) { fail_in_coroutine(); }

int main(void) {
  getcontext(&routine);
  routine.uc_stack.ss_size = 256 << 10;
  routine.uc_stack.ss_sp = malloc(routine.uc_stack.ss_size);
  routine.uc_link = &caller;
  makecontext(&routine, run, 0);
  swapcontext(&caller, &routine);
  printf("%p\n", block);
}
