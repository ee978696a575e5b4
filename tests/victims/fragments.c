// Fragments its heap in the given way, prints its pid and waits for the end of stdin.
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kBlocks = 120000, kBlockBytes = 1000, kThreads = 12, kLarge = 64 };
static void* blocks[kBlocks + kLarge];

static void fill(unsigned count, unsigned bytes) {
  for (unsigned i = 0; i < count; ++i) {
    blocks[i] = malloc(bytes);
    memset(blocks[i], 1, bytes);
  }
}

// 120 MiB, of which every second block is freed.
static void every_second(void) {
  fill(kBlocks, kBlockBytes);
  for (unsigned i = 0; i < kBlocks; i += 2) free(blocks[i]);
}

// The same amount, freed in runs of a hundred blocks.
static void long_runs(void) {
  fill(kBlocks, kBlockBytes);
  for (unsigned i = 0; i + 100 < kBlocks; ++i)
    if (i / 100 % 2 == 0) free(blocks[i]);
}

// Free in whole pages, which have been given back.
static void trimmed(void) {
  long_runs();
  malloc_trim(0);
}

// 60 MiB are free and resident, and 64 MiB of live blocks in the same heap are not.
static void untouched(void) {
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
  for (unsigned i = 0; i < kLarge; ++i) blocks[kBlocks + i] = malloc(1 << 20);
  every_second();
}

static pthread_barrier_t all_have_begun;

static void* in_thread(void* unused) {
  (void)unused;
  enum { kOwn = 12000 };
  static _Thread_local void* own[kOwn];
  pthread_barrier_wait(&all_have_begun);
  for (unsigned i = 0; i < kOwn; ++i) memset(own[i] = malloc(kBlockBytes), 1, kBlockBytes);
  for (unsigned i = 0; i + 1 < kOwn; ++i) free(own[i]);
  pthread_barrier_wait(&all_have_begun);
  return NULL;
}

// Each thread keeps its last block, at the end of its arena.
static void arenas(void) {
  pthread_t threads[kThreads];
  pthread_barrier_init(&all_have_begun, NULL, kThreads);
  for (unsigned i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, in_thread, NULL);
  for (unsigned i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
}

static void in_use(void) {
  fill(60000, kBlockBytes);
  blocks[60000] = calloc(1, 100 << 20);
}

int main(int count, char** arguments) {
  const char* const what = count > 1 ? arguments[1] : "";
  if (strcmp(what, "every_second") == 0) every_second();
  if (strcmp(what, "long_runs") == 0) long_runs();
  if (strcmp(what, "trimmed") == 0) trimmed();
  if (strcmp(what, "untouched") == 0) untouched();
  if (strcmp(what, "arenas") == 0) arenas();
  if (strcmp(what, "in_use") == 0) in_use();
  printf("%d\n", (int)getpid());
  fflush(stdout);
  char byte;
  return read(0, &byte, 1) < 0;
}
