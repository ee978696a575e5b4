// Many threads, which allocate and end; at the end a thread "the_last" leaks 40 MiB, and the
// program is killed.
//
// many_threads one_by_one COUNT: each ends before the next one begins.
// many_threads at_once COUNT: all live at the same time. Each keeps 3001 bytes; the main thread
// frees them.
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static pthread_barrier_t g_all;
static pthread_attr_t g_attributes;

static void* pass(void* unused) {
  (void)unused;
  char* const block = malloc(100003);
  block[0] = 1;
  free(block);
  return NULL;
}

static void* stay(void* unused) {
  (void)unused;
  void* const block = malloc(3001);
  pthread_barrier_wait(&g_all);
  return block;
}

static void* leak(void* unused) {
  (void)unused;
  pthread_setname_np(pthread_self(), "the_last");
  for (int i = 0; i < 40; ++i) *(char*)malloc(1 << 20) = 1;
  return NULL;
}

static pthread_t start(void* (*body)(void*), size_t number) {
  pthread_t thread;
  if (pthread_create(&thread, &g_attributes, body, NULL) != 0) {
    fprintf(stderr, "only %zu threads\n", number);
    exit(77);
  }
  return thread;
}

int main(int count, char** words) {
  if (count != 3) return 1;
  const size_t threads = atol(words[2]);
  pthread_attr_init(&g_attributes);
  pthread_attr_setstacksize(&g_attributes, 64 << 10);
  if (strcmp(words[1], "at_once") == 0) {
    pthread_barrier_init(&g_all, NULL, threads);
    pthread_t* const all = malloc(threads * sizeof *all);
    for (size_t i = 0; i < threads; ++i) all[i] = start(stay, i);
    for (size_t i = 0; i < threads; ++i) {
      void* block;
      pthread_join(all[i], &block);
      free(block);
    }
    free(all);
  } else {
    for (size_t i = 0; i < threads; ++i) pthread_join(start(pass, i), NULL);
  }
  pthread_join(start(leak, 0), NULL);
  kill(getpid(), SIGKILL);
  return 0;
}
