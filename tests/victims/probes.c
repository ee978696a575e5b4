/* Optional requests (probes), which do not count as failures. */
#include <stdlib.h>
#include <sys/mman.h>

#include "impossible_sizes.h"

int main(void) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS;
  const size_t huge = TOO_MUCH + (113ul << 21);
  mmap(NULL, huge, PROT_READ | PROT_WRITE, flags | MAP_HUGETLB, -1, 0);
#ifdef MAP_32BIT
  mmap(NULL, huge, PROT_READ | PROT_WRITE, flags | MAP_32BIT, -1, 0);
#endif
  mmap((void*)0x10000000, TOO_MUCH + 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
  mmap(NULL, 3, PROT_READ, MAP_PRIVATE, -1, 0);
  void* block;
  return posix_memalign(&block, 3, 3) == 0 || malloc(0) == NULL;
}
