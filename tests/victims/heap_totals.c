/* Prints glibc's allocated bytes at several points, each with a bundle to compare. Allocates in
 * signal handlers and in destructors of thread-specific data, and frees in other threads. */
#include <malloc.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "marks.h"

enum { kBlocks = 2000 };
static void* volatile blocks[kBlocks];
static size_t size_of(size_t i) { return (i * 7919) % 3000 + (i % 500 == 0 ? 300000 : 1); }

/* Allocated bytes with chunk headers, without thread caches (by the test's tunable). */
static void point(const char* name) {
  const struct mallinfo2 info = mallinfo2();
  char line[128];
  const int n =
      snprintf(line, sizeof line, "%s %zu %zu %zu\n", name, info.uordblks, info.hblkhd, info.hblks);
  if (write(1, line, (size_t)n) != n) _exit(9);
  mark(name);
}

static void allocate(void) {
  for (size_t i = 0; i < kBlocks; ++i) blocks[i] = malloc(size_of(i));
}
static void resize(void) {
  for (size_t i = 0; i < kBlocks; i += 3) blocks[i] = realloc(blocks[i], size_of(i + 7) + 100);
  for (size_t i = 1; i < kBlocks; i += 3) {
    free(blocks[i]);
    blocks[i] = i % 2 ? calloc(3, size_of(i)) : aligned_alloc(64, (size_of(i) + 63) & ~63ul);
  }
}
static void release(void) {
  for (size_t i = 0; i < kBlocks; ++i) free(blocks[i]);
}

static void* release_elsewhere(void* unused) {
  release();
  return unused;
}

static pthread_key_t key;
static void* kept[64];
static int kept_count;
static void at_thread_end(void* block) {
  free(block);
  kept[kept_count++] = malloc(3001);
}
static void* use_key(void* unused) {
  pthread_setspecific(key, malloc(5003));
  return unused;
}

/* A handler that allocates while the program only maps, so it may interrupt a hook anywhere.
 */
static void* volatile from_handler[1024];
static volatile int handled;
static void handler(int number) {
  void* volatile* const place = &from_handler[handled++ % 1024];
  free(*place);
  *place = malloc(100 + (size_t)(handled * number) % 70000);
}
static void interrupt(void) {
  const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
  signal(SIGALRM, handler);
  setitimer(ITIMER_REAL, &often, NULL);
  while (handled < 3000) {
    void* at = mmap(NULL, 70000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(at, 70000);
  }
  setitimer(ITIMER_REAL, &never, NULL);
}

static void join(void* (*function)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, function, NULL);
  pthread_join(thread, NULL);
}

int main(void) {
  join(use_key); /* allocates what threads need only once */
  pthread_key_create(&key, at_thread_end);
  point("start");
  allocate();
  point("allocated");
  resize();
  point("resized");
  join(release_elsewhere);
  point("released elsewhere");
  for (int i = 0; i < 20; ++i) join(use_key);
  point("destructors");
  interrupt();
  point("handlers");
  allocate();
  const pid_t child = fork();
  if (child == 0) {
    void* volatile more = malloc(3 << 20); /* enough to start a session */
    point("child");
    release();
    free(more);
    point("child released");
    _exit(0);
  }
  waitpid(child, NULL, 0);
  point("parent");
  release();
  point("end");
}
