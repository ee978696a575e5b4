/* As Polars, Arrow or DuckDB: it works in a thread of its own, while the caller waits. */
#include <pthread.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static size_t wanted;
static int is_started, has_done;

int has_worked(void) { return __atomic_load_n(&has_done, __ATOMIC_SEQ_CST); }

static void* work(void* nothing) {
  pthread_mutex_lock(&lock);
  for (;; pthread_cond_wait(&changed, &lock)) {
    if (wanted == 0) continue;
    char* p = mmap(NULL, wanted, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED) memset(p, 1, wanted);
    wanted = 0;
    __atomic_store_n(&has_done, 1, __ATOMIC_SEQ_CST);
    pthread_cond_broadcast(&changed);
  }
  return nothing;
}

int is_done(void) {
  pthread_mutex_lock(&lock);
  const int is = wanted == 0;
  pthread_mutex_unlock(&lock);
  return is;
}

/* Waits for nothing: in a call for that, or as one waits for a thread. */
static int is_asleep;
void sleep_on(int as_for_thread) {
  static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;
  static pthread_cond_t never = PTHREAD_COND_INITIALIZER;
  __atomic_store_n(&is_asleep, 1, __ATOMIC_SEQ_CST);
  pthread_mutex_lock(&own);
  for (;;) as_for_thread ? (void)pthread_cond_wait(&never, &own) : (void)pause();
}
int sleeps(void) { return __atomic_load_n(&is_asleep, __ATOMIC_SEQ_CST); }

/* Returns before the memory is there, or once it is. */
void request(size_t bytes, int waits) {
  pthread_t thread;
  pthread_mutex_lock(&lock);
  if (!is_started++) pthread_create(&thread, NULL, work, NULL);
  while (wanted != 0) pthread_cond_wait(&changed, &lock);
  wanted = bytes;
  pthread_cond_broadcast(&changed);
  while (waits && wanted != 0) pthread_cond_wait(&changed, &lock);
  pthread_mutex_unlock(&lock);
}

/* The memory is there later: once has_worked(). */
static void* start(void* bytes) {
  usleep(300000);
  request((size_t)bytes, 0);
  return NULL;
}
void request_later(size_t bytes) {
  pthread_t thread;
  pthread_create(&thread, NULL, start, (void*)bytes);
}
