/* Allocates and frees in N threads until it is killed, and keeps its own counters in a shared file:
 * for each thread {allocated blocks, freed blocks, requested live bytes, usable live bytes}. It
 * keeps one block, so that at every instant it holds enough for a bundle by `oomrec recover`. */
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

struct Books {
  volatile uint64_t allocated, freed, live_bytes, live_usable;
};
static struct Books* books;
enum { kKept = 17 << 20 };

static void* work(void* number) {
  struct Books* own = books + (size_t)number;
  void* blocks[512] = {0};
  size_t sizes[512] = {0};
  uint32_t random = 12345 + (uint32_t)(size_t)number;
  for (;;) {
    random = random * 1664525 + 1013904223;
    const size_t at = random >> 23;
    if (blocks[at]) {
      own->live_usable -= malloc_usable_size(blocks[at]);
      own->live_bytes -= sizes[at];
      free(blocks[at]);
      own->freed++;
      blocks[at] = NULL;
    } else {
      sizes[at] = 16 + (random & 0x1ffff);
      blocks[at] = malloc(sizes[at]);
      own->allocated++;
      own->live_bytes += sizes[at];
      own->live_usable += malloc_usable_size(blocks[at]);
    }
  }
  return NULL;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const int threads = atoi(arguments[2]);
  const int fd = open(arguments[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (ftruncate(fd, 4096) != 0) return 1;
  books = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  close(fd);
  void* const kept = malloc(kKept);
  if (!kept) return 1;
  books->live_usable = malloc_usable_size(kept);
  books->live_bytes = kKept;
  books->allocated = 1;
  pthread_t thread;
  for (int i = 1; i < threads; ++i) pthread_create(&thread, NULL, work, (void*)(size_t)i);
  work(NULL);
}
