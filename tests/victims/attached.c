// Is attached to while it runs: threads that allocate and calculate, and one that waits in a system
// call. Says at its end whether everything came out as it does undisturbed.
//
// attached WAIT THREADS [SECONDS]: waits two seconds in nanosleep, poll, epoll, select, futex or
// read, or "spin": in no call.
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <time.h>
#include <unistd.h>

enum { kMostThreads = 16, kErrno = 77 };
static int g_seconds = 2;
static atomic_int g_stop;
static atomic_int g_wrong;
static atomic_long g_longest_gap_ns;

static long now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * 1000000000L + now.tv_nsec;
}

// The same every time: from integers, doubles in registers, and long doubles on the x87 stack.
static double calculate_once(unsigned seed) {
  double sum = seed;
  long double root = 1;
  for (int i = 1; i < 60; ++i) {
    sum = sum * 1.0000001 + 1.0 / i;
    root = root / 2 + (long double)i / 3;
  }
  return sum + (double)root;
}

// Called through it, so that the compiler does not calculate once for all.
static double (*volatile calculate)(unsigned) = calculate_once;

void* allocate_in_thread(size_t bytes) { return malloc(bytes); }

static void* work(void* seed_of_thread) {
  const unsigned seed = (unsigned)(size_t)seed_of_thread;
  const double expected = calculate(seed);
  void* kept[64] = {0};
  long last = now_ns();
  errno = kErrno;
  for (unsigned i = 0; !g_stop; ++i) {
    if (calculate(seed) != expected || errno != kErrno) g_wrong = 1;
    const unsigned slot = i % 64;
    free(kept[slot]);
    const size_t bytes = 16 + i * 37 % 3000;
    kept[slot] = allocate_in_thread(bytes);
    memset(kept[slot], (int)i, bytes);
    const long now = now_ns();
    if (now - last > g_longest_gap_ns) g_longest_gap_ns = now - last;
    last = now;
  }
  for (unsigned slot = 0; slot < 64; ++slot) free(kept[slot]);
  return NULL;
}

// The call's result, which must be that of a wait without an interruption.
static long wait_in(const char* call) {
  const struct timespec time = {g_seconds, 0};
  int ends[2];
  if (pipe(ends) != 0) return -2;
  if (strcmp(call, "nanosleep") == 0) return nanosleep(&time, NULL);
  if (strcmp(call, "poll") == 0) {
    struct pollfd end = {ends[0], POLLIN, 0};
    return poll(&end, 1, g_seconds * 1000);
  }
  if (strcmp(call, "epoll") == 0) {
    const int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN};
    epoll_ctl(set, EPOLL_CTL_ADD, ends[0], &event);
    const int result = epoll_wait(set, &event, 1, g_seconds * 1000);
    close(set);
    return result;
  }
  if (strcmp(call, "select") == 0) {
    fd_set set;
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    struct timeval wait = {g_seconds, 0};
    return select(ends[0] + 1, &set, NULL, NULL, &wait);
  }
  if (strcmp(call, "futex") == 0) {
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t never = PTHREAD_COND_INITIALIZER;
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += g_seconds;
    pthread_mutex_lock(&lock);
    const int result = pthread_cond_timedwait(&never, &lock, &until);
    pthread_mutex_unlock(&lock);
    return result == ETIMEDOUT ? 0 : result;
  }
  if (strcmp(call, "read") == 0) {  // from the test, which writes a byte
    char byte;
    return read(0, &byte, 1) == 1 ? 0 : -1;
  }
  const long until = now_ns() + g_seconds * 1000000000L;
  const double expected = calculate(7);
  while (now_ns() < until)
    if (calculate(7) != expected) return -3;
  return 0;
}

int main(int count, char** words) {
  if (count < 3) return 2;
  if (count > 3) g_seconds = atoi(words[3]);
  const size_t threads = (size_t)atoi(words[2]);
  pthread_t all[kMostThreads];
  for (size_t i = 0; i < threads; ++i) pthread_create(&all[i], NULL, work, (void*)(i + 1));
  printf("ready\n");
  fflush(stdout);
  errno = kErrno;
  const long begin = now_ns();
  const long result = wait_in(words[1]);
  const int error = errno;
  const long took_ms = (now_ns() - begin) / 1000000;
  g_stop = 1;
  for (size_t i = 0; i < threads; ++i) pthread_join(all[i], NULL);
  sigset_t blocked;
  sigprocmask(SIG_BLOCK, NULL, &blocked);
  int is_blocked = 0;
  for (int number = 1; number < 65; ++number) is_blocked |= sigismember(&blocked, number) == 1;
  printf("result %ld errno %d wrong %d blocked %d\n", result, error, g_wrong, is_blocked);
  printf("took %ld gap_us %ld\n", took_ms, g_longest_gap_ns / 1000);
  return 0;
}
