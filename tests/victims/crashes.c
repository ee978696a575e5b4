/* Crashes after a failed allocation, or for another reason. Arguments: the way, and the size of the
 * request.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "impossible_sizes.h"

static size_t asked = TOO_MUCH + 211;
static volatile char* volatile nowhere = (volatile char*)8;

static volatile char* ask(size_t bytes) { return malloc(bytes); }

static void use_null(void) { ask(asked)[0x10] = 1; }
static void use_without_refusal(void) { *nowhere = 1; }

static void give_up(void) {
  if (ask(asked) == NULL) abort();
}

/* The compiler must not know that this never returns. */
static int dig(volatile char* above, int depth) {
  volatile char room[512];
  room[0] = above[0];
  return depth < 0 ? 0 : dig(room, depth + 1) + room[0];
}
static void run_over(void) {
  if (ask(asked) == NULL) dig("x", 1);
}
static void* run_over_thread(void* unused) {
  run_over();
  return unused;
}

static void* refused_thread(void* unused) {
  if (ask(asked) != NULL) exit(1);
  return unused;
}
static void* null_thread(void* unused) {
  use_null();
  return unused;
}
static void in_thread(void* (*work)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, work, NULL);
  pthread_join(thread, NULL);
}

/* A thread's stack as glibc makes it since 2.42, with the guard as a part of the mapping. */
static void run_over_guarded(void) {
  enum { kStack = 1 << 20, kGuard = 64 << 10, kGuardInstall = 102 };
  void* const stack =
      mmap(NULL, kStack, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (madvise(stack, kGuard, kGuardInstall) != 0) exit(77); /* the kernel is older than 6.13 */
  pthread_attr_t own_stack;
  pthread_attr_init(&own_stack);
  pthread_attr_setstack(&own_stack, stack, kStack);
  pthread_t thread;
  pthread_create(&thread, &own_stack, run_over_thread, NULL);
  pthread_join(thread, NULL);
}

static void map_failed(void) {
  volatile char* const pages =
      mmap(NULL, asked, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  pages[0x10] = 1;
}

/* The same call fails, then succeeds. The crash is at an unrelated NULL. */
static void use_after_served(void) {
  volatile char* block = NULL;
  for (volatile size_t bytes = asked; block == NULL; bytes = 100000) block = ask(bytes);
  *nowhere = 1;
}

static void send(int number) {
  if (ask(asked) == NULL) kill(getpid(), number);
  for (;;) pause();
}
static void send_segv(void) { send(SIGSEGV); }
static void raise_abrt(void) {
  if (ask(asked) == NULL) raise(SIGABRT);
}

static void beyond_file(void) {
  char name[] = "/tmp/crashes_XXXXXX";
  const int fd = mkstemp(name);
  unlink(name);
  const long page = sysconf(_SC_PAGESIZE);
  if (ftruncate(fd, page) != 0) exit(1);
  volatile char* const pages = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (ask(asked) == NULL) pages[page + 1000] = 1;
}

static void call_null(void) {
  void (*volatile function)(void) = (void (*)(void))ask(asked);
  function();
}

/* Waits for a signal. */
static void wait_refused(void) {
  if (ask(asked) != NULL) exit(1);
  puts("ready");
  fflush(stdout);
  for (;;) pause();
}

/* The parent's allocation fails, the child crashes, the parent prints the child's signal. */
static void fork_child(void) {
  if (ask(asked) != NULL) exit(1);
  const pid_t child = fork();
  if (child == 0) *nowhere = 1;
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", status & 0x7f);
  exit(0);
}
static void fork_child_refused(void) {
  if (ask(asked) != NULL) exit(1);
  const pid_t child = fork();
  if (child == 0) use_null();
  int status = 0;
  waitpid(child, &status, 0);
  printf("child %d\n", status & 0x7f);
  exit(0);
}

/* Several threads at once. */
static pthread_barrier_t together;
static void* null_together(void* unused) {
  volatile char* const block = ask(asked);
  pthread_barrier_wait(&together);
  block[0x20] = 1;
  return unused;
}
static void many_threads(void) {
  pthread_barrier_init(&together, NULL, 8);
  for (int i = 0; i < 7; ++i) {
    pthread_t thread;
    pthread_create(&thread, NULL, null_together, NULL);
  }
  null_together(NULL);
}

int main(int count, char** words) {
  static const struct {
    const char* way;
    void (*crash)(void);
  } kWays[] = {{"null", use_null},
               {"plain", use_without_refusal},
               {"abort", give_up},
               {"overflow", run_over},
               {"guarded_overflow", run_over_guarded},
               {"map", map_failed},
               {"served", use_after_served},
               {"kill", send_segv},
               {"raise", raise_abrt},
               {"bus", beyond_file},
               {"call", call_null},
               {"wait", wait_refused},
               {"fork", fork_child},
               {"fork_failure", fork_child_refused},
               {"many", many_threads}};
  const char* const way = count > 1 ? words[1] : "";
  if (count > 2) asked = strtoull(words[2], NULL, 10);
  for (size_t i = 0; i < sizeof kWays / sizeof *kWays; ++i)
    if (strcmp(kWays[i].way, way) == 0) kWays[i].crash();
  if (strcmp(way, "thread") == 0) in_thread(null_thread);
  if (strcmp(way, "thread_overflow") == 0) in_thread(run_over_thread);
  if (strcmp(way, "other") == 0) { /* fails there, crashes here */
    in_thread(refused_thread);
    *nowhere = 1;
  }
  return 9;
}
