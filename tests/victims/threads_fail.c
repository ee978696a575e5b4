/* 64 threads, each with one failure of a different size. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "impossible_sizes.h"

static void* fail(void* number) { return malloc(TOO_MUCH + 1000 + 2 * (size_t)number); }

int main(void) {
  pthread_t threads[64];
  int refused = 0;
  for (size_t i = 0; i < 64; ++i) pthread_create(&threads[i], NULL, fail, (void*)i);
  for (size_t i = 0; i < 64; ++i) {
    void* block;
    pthread_join(threads[i], &block);
    refused += block == NULL;
  }
  printf("%d refused\n", refused);
}
