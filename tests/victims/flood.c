/* Requests more than the limit 200,000 times, on several stacks, with other work in between.
 * Prints the CPU time. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "impossible_sizes.h"

static volatile unsigned long sum;
__attribute__((noinline)) static void work(void) {
  for (unsigned i = 0; i < 1000; ++i) sum += i * sum;
}

__attribute__((noinline)) static int ask(size_t n, int depth) {
  if (depth > 0) return ask(n, depth - 1) + 0 * (int)sum;
  void* volatile block = malloc(n);
  const int refused = block == NULL;
  free(block);
  return refused;
}

int main(int count, char** arguments) {
  const size_t bytes = count > 1 ? strtoull(arguments[1], NULL, 0) : TOO_MUCH;
  int refused = 0;
  for (int i = 0; i < 200000; ++i) {
    refused += ask(bytes + (size_t)i, i % 40);
    work();
  }
  printf("refused %d, %ld us\n", refused, (long)(clock() * 1000000.0 / CLOCKS_PER_SEC));
}
