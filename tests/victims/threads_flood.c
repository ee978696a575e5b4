/* 64 threads with different names, which all fail at once, with different sizes. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "impossible_sizes.h"
#include "marks.h"

enum { kThreads = 64 };
static pthread_barrier_t start;

static void* fail(void* number) {
  char name[16];
  snprintf(name, sizeof name, "worker %zu", (size_t)number);
  pthread_setname_np(pthread_self(), name);
  pthread_barrier_wait(&start);
  return malloc(TOO_MUCH + 1000 + 2 * (size_t)number);
}

int main(void) {
  pthread_t threads[kThreads];
  int refused = 0;
  pthread_barrier_init(&start, NULL, kThreads);
  for (size_t i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, fail, (void*)i);
  for (size_t i = 0; i < kThreads; ++i) {
    void* block;
    pthread_join(threads[i], &block);
    refused += block == NULL;
  }
  mark("end");
  printf("%d refused\n", refused);
}
