/* Mappings with a fallback (probes), then one without. */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>

#include "impossible_sizes.h"

int main(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  void* huge =
      mmap(NULL, TOO_MUCH + (113ul << 21), PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
  void* hinted = mmap((void*)0x10000000, TOO_MUCH + 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
  errno = 0;
  void* plain = mmap(NULL, 2 * TOO_MUCH + 127, PROT_READ | PROT_WRITE, flags, -1, 0);
  printf("%d %d %d errno %d\n", huge == MAP_FAILED, hinted == MAP_FAILED, plain == MAP_FAILED,
         errno);
}
