/* Grows a mapping until it fails: first in place (a probe), then at any address. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "impossible_sizes.h"

int main(void) {
  const size_t bytes = 1 << 20;
  void* at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  at = mremap(at, bytes, 2 * bytes, MREMAP_MAYMOVE);
  void* in_place = mremap(at, 2 * bytes, TOO_MUCH + 4096, 0);
  errno = 0;
  void* moved = mremap(at, 2 * bytes, TOO_MUCH + 131 * 4096ul, MREMAP_MAYMOVE);
  printf("%d %d %d errno %d\n", at != MAP_FAILED, in_place == MAP_FAILED, moved == MAP_FAILED,
         errno);
}
