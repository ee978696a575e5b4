/* N threads that meet at a barrier, then allocate at once, small and large, and meet again: meets N
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static pthread_barrier_t barrier;

static void* work(void* argument) {
  pthread_barrier_wait(&barrier);
  void* volatile small = malloc(100);
  void* volatile large = malloc(100000);
  memset(small, 1, 100);
  free(large);
  pthread_barrier_wait(&barrier);
  free(small);
  return argument;
}

int main(int count, char** words) {
  const int threads = count > 1 ? atoi(words[1]) : 1000;
  pthread_t* const all = malloc(sizeof *all * (size_t)threads);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, 64 << 10);
  pthread_barrier_init(&barrier, NULL, (unsigned)threads);
  for (int i = 0; i < threads; ++i)
    if (pthread_create(&all[i], &attributes, work, NULL) != 0) return 1;
  for (int i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  puts("met");
  return 0;
}
