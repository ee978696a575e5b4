/* Sets RLIMIT_AS to the mapped size plus argv[1] pages, then does everything that may allocate. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "impossible_sizes.h"

static void* in_thread(void* unused) {
  for (size_t i = 1; i < 100; ++i) free(malloc(1000 * i));
  return unused;
}

static int deep(int levels) {
  if (levels > 0) return deep(levels - 1) + 1;
  for (size_t i = 0; i < 300; ++i) {
    char* const block = malloc(5000 + i);
    if (block != NULL) block[0] = 1;
  }
  return 0;
}

static unsigned long mapped_pages(void) {
  unsigned long pages = 0;
  FILE* const statm = fopen("/proc/self/statm", "r");
  if (statm == NULL || fscanf(statm, "%lu", &pages) != 1) exit(9);
  fclose(statm);
  return pages;
}

int main(int count, char** arguments) {
  const unsigned long more = count > 1 ? strtoul(arguments[1], NULL, 10) : 0;
  const rlim_t bytes = (mapped_pages() + more) * 4096;
  if (setrlimit(RLIMIT_AS, &(struct rlimit){bytes, bytes}) != 0) return 9;
  for (int levels = 1; levels < 100; levels += 5) deep(levels);
  mmap(NULL, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pthread_t thread;
  if (pthread_create(&thread, NULL, in_thread, NULL) == 0) pthread_join(thread, NULL);
  const pid_t child = fork();
  if (child == 0) {
    void* volatile block = malloc(2 << 20);
    _exit(block == (void*)1);
  }
  int status = 0;
  if (child > 0) waitpid(child, &status, 0);
  printf("child %d, %s\n", status, malloc(TOO_MUCH) == NULL ? "refused" : "given");
  return 3;
}
