/* Asks for blocks until one is refused, then again for the same, as an allocator does that has
 * freed what it can; then other functions ask. Prints who was served: "again N other N size N".
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kBytes = 5000, kRounds = 50 };

static void* collect_and_ask(size_t bytes, int* repeats_served) {
  char* block = malloc(bytes);
  if (block == NULL) {
    block = malloc(bytes); /* a garbage collector would have run before */
    *repeats_served += block != NULL;
  }
  if (block != NULL) memset(block, 1, bytes);
  return block;
}

static int report(size_t bytes) {
  int served = 0;
  for (int round = 0; round < kRounds; ++round) served += malloc(bytes) != NULL;
  return served;
}

int main(void) {
  int again = 0, first = 0;
  while (collect_and_ask(kBytes, &again) != NULL) ++first;
  for (int round = 0; round < kRounds; ++round) collect_and_ask(kBytes, &again);
  const int other = report(kBytes), size = report(2 * kBytes);
  printf("again %d other %d size %d first %d\n", again, other, size, first);
  return 0;
}
