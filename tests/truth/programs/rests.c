// Holds memory of some sort, prints "ready PID", and waits for a signal. rests SORT MIB [SECONDS].
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>

#include "truth.h"

static void* waits(void* none) {
  ready();
  for (;;) pause();
}

int main(int argc, char** argv) {
  const char* sort = argv[1];
  size_t bytes = (size_t)atol(argv[2]) << 20;
  char* own = hold(20);
  if (!strcmp(sort, "touched")) hold(atol(argv[2]));
  if (!strcmp(sort, "promised")) {  // address space, never touched
    void* map = mmap(NULL, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    *(char*)map = 1;
  }
  if (!strcmp(sort, "calloc")) *(volatile char*)calloc(bytes, 1) = 1;
  if (!strcmp(sort, "reserved")) mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (!strcmp(sort, "freed")) {
    char* map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 1, bytes);
    nap_ms(150);
    munmap(map, bytes);
  }
  if (!strcmp(sort, "dropped")) {
    char* map = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(map, 1, bytes);
    madvise(map, bytes, MADV_DONTNEED);
    nap_ms(150);
  }
  if (!strcmp(sort, "no_main")) {
    hold(atol(argv[2]));
    pthread_t thread;
    pthread_create(&thread, NULL, waits, NULL);
    pthread_exit(NULL);
  }
  free(malloc(3 << 20));  // the recorder looks at its levels
  nap_ms(120);
  memset(malloc(2 << 20), 1, 2 << 20);
  ready();
  if (argc > 3) {
    nap_ms(1000 * atol(argv[3]));
    return own[7] - 1;
  }
  for (;;) pause();
}
