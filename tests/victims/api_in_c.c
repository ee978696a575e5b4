/* The C API in a threaded program: nested contexts, marks, a changed limit, a requested bundle. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "impossible_sizes.h"
#include "include/oomrec.h"

static void* in_thread(void* unused) {
  OOMREC_CALL(oomrec_context_push, "loader");
  void* volatile refused = malloc(TOO_MUCH + 173);
  OOMREC_CALL(oomrec_context_pop);
  return refused != NULL ? unused : NULL;
}

static void handler(int unused) {
  (void)unused;
  OOMREC_CALL(oomrec_mark, "in a handler");
}

int main(void) {
  OOMREC_CALL(oomrec_context_push, "epoch 3");
  OOMREC_CALL(oomrec_context_push, "batch 7");
  void* volatile held = malloc((8 << 20) + 179);
  OOMREC_CALL(oomrec_context_pop);
  void* volatile also_held = malloc((9 << 20) + 181);
  OOMREC_CALL(oomrec_context_pop);
  OOMREC_CALL(oomrec_context_pop); /* one too many */
  OOMREC_CALL(oomrec_mark, "halfway");
  signal(SIGUSR1, handler);
  raise(SIGUSR1);
  OOMREC_CALL(oomrec_mark, NULL);
  pthread_t thread;
  pthread_create(&thread, NULL, in_thread, NULL);
  pthread_join(thread, NULL);
  OOMREC_CALL(oomrec_set_limit, 32 << 20);
  void* volatile refused = malloc((16 << 20) + 191);
  OOMREC_CALL(oomrec_set_limit, 0);
  void* volatile given = malloc((16 << 20) + 191);
  OOMREC_CALL(oomrec_dump, "asked in C");
  printf("%d %d %d\n", refused != NULL, given != NULL, held != NULL && also_held != NULL);
}
