/* A failing aligned_alloc. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "impossible_sizes.h"

int main(void) {
  void* block = aligned_alloc(64, TOO_MUCH + 109 * 64);
  printf("%p %d\n", block, errno);
}
