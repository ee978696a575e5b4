// What the programs share: memory that is held and touched, and the line that an event waits for.
#pragma once
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static inline char* hold(size_t mib) {
  char* block = (char*)malloc(mib << 20);
  if (block) memset(block, 1, mib << 20);
  return block;
}

static inline void nap_ms(long ms) {
  struct timespec left = {ms / 1000, ms % 1000 * 1000000};
  while (nanosleep(&left, &left) != 0) {
  }
}

static inline void ready(void) {
  printf("ready %d\n", getpid());
  fflush(stdout);
}
