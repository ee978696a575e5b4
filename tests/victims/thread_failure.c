/* pthread_create fails because the requested stack does not fit. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>

#include "impossible_sizes.h"

static void* run(void* nothing) { return nothing; }

int main(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 4 * TOO_MUCH);
  pthread_t thread;
  printf("EAGAIN %d\n", pthread_create(&thread, &attributes, run, NULL) == EAGAIN);
}
