// An allocator that reserves an arena and commits parts of it. commits HOW.
#define _GNU_SOURCE
#include <sys/mman.h>

#include "truth.h"

static const size_t kArena = 600ul << 20, kStep = 20 << 20;

int main(int argc, char** argv) {
  const char* how = argv[1];
  hold(24);
  nap_ms(20);
  if (!strcmp(how, "probe")) {  // looks for a place near the program; takes what it gets
    for (int i = 0; i < 40; ++i) {
      void* wish = (void*)(0x200000000ul + ((unsigned long)i << 31));
      void* map =
          mmap(wish, 1ul << 30, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      if (map != MAP_FAILED) munmap(map, 1ul << 30);
    }
    void* map = mmap((void*)0x200000000ul, 64 << 20, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 1, 1 << 20);
    return map == MAP_FAILED;
  }
  if (!strcmp(how, "smaller")) {
    size_t bytes = 64ul << 30;
    void* map = MAP_FAILED;
    while (map == MAP_FAILED && bytes >= (16 << 20)) {
      map = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
      bytes /= 2;
    }
    return map == MAP_FAILED;
  }
  char* arena = mmap(NULL, kArena, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (arena == MAP_FAILED) return 9;
  for (size_t used = 0; used < kArena; used += kStep) {
    int refused;
    if (!strcmp(how, "mprotect")) {
      refused = mprotect(arena + used, kStep, PROT_READ | PROT_WRITE) != 0;
    } else {
      refused = mmap(arena + used, kStep, PROT_READ | PROT_WRITE,
                     MAP_FIXED | MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED;
    }
    if (refused && strcmp(how, "fixed_crash")) return 5;
    memset(arena + used, 1, kStep);
  }
  return 0;
}
