/* Leaks in one function and uses memory in another. Prints what it has leaked. */
#include <stdio.h>
#include <stdlib.h>

#include "impossible_sizes.h"

static void* kept[4000];

__attribute__((noinline)) static void leak(size_t i) { kept[i] = malloc(10007); }
__attribute__((noinline)) static void borrow(void) { free(malloc(70001)); }

int main(void) {
  for (size_t i = 0; i < 4000; ++i) {
    leak(i);
    borrow();
  }
  void* volatile last = malloc(TOO_MUCH + 137);
  printf("{\"leaked_bytes\": %d, \"leaked_blocks\": %d}\n", 4000 * 10007, 4000);
  return last != NULL;
}
