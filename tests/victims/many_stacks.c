/* Coroutines on stacks of their own, each of which allocates a recorded block whenever its turn
 * comes: many_stacks COROUTINES TURNS. Half of the stacks have a guard page, the others are next to
 * each other. Ends with a refused request in the last coroutine.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <ucontext.h>

#include "impossible_sizes.h"

enum { STACK = 64 << 10, GUARD = 4 << 10, BLOCK = 100000 };

static ucontext_t program, *coroutines;
static int fails;

static void in_coroutine(void) {
  char* volatile block = malloc(fails ? TOO_MUCH + 1 : BLOCK);
  if (block != NULL) block[0] = 1;
  free(block);
}

static void run(int number) {
  for (;;) {
    in_coroutine();
    swapcontext(&coroutines[number], &program);
  }
}

int main(int count, char** words) {
  // Volatile: getcontext() may return twice.
  const volatile int all = count > 1 ? atoi(words[1]) : 8;
  const volatile int turns = count > 2 ? atoi(words[2]) : 8;
  coroutines = calloc((size_t)all, sizeof *coroutines);
  for (int i = 0; i < all; ++i) {
    char* const memory =
        mmap(NULL, STACK + GUARD, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) return 1;
    if (i % 2 == 0) mprotect(memory, GUARD, PROT_NONE);
    getcontext(&coroutines[i]);
    coroutines[i].uc_stack.ss_sp = memory + GUARD;
    coroutines[i].uc_stack.ss_size = STACK;
    makecontext(&coroutines[i], (void (*)(void))run, 1, i);
  }
  for (int turn = 0; turn < turns; ++turn) swapcontext(&program, &coroutines[turn % all]);
  fails = 1;
  swapcontext(&program, &coroutines[all - 1]);
  puts("done");
  return 0;
}
