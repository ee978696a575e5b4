/* A failing posix_memalign (returns the error, keeps errno), and invalid calls. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "impossible_sizes.h"

int main(void) {
  void* block = &block;
  errno = 7;
  int misuse = posix_memalign(&block, 3, 100);
  int refused = posix_memalign(&block, 64, TOO_MUCH + 107);
  printf("misuse %d refused %d errno is mine %d\n", misuse, refused, errno == 7 || errno == ENOMEM);
}
