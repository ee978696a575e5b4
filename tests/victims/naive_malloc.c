/* Does not check malloc: dies of SIGSEGV at the first store. */
#include <stdio.h>
#include <stdlib.h>

#include "impossible_sizes.h"

int main(void) {
  puts("asking");
  fflush(stdout);
  volatile char* block = malloc(TOO_MUCH + 101);
  block[0] = 1;
  return 0;
}
