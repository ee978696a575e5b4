/* Executes the steps in its arguments: `hold:24 wait ask:1000 abort`. The victims of
 * test_death_matrix.py are this program in several languages, with the same names of functions.
 * Each language defines how it requests memory:
 *
 *   hold(MIB)       allocates and keeps MIB blocks of 1 MiB
 *   ask(BYTES)      the block; NULL after a failure
 *   demand(BYTES)   ends the program on failure
 *
 * After `leave` the main thread has ended, and another one takes the remaining steps.
 */
#ifndef STEPS_H
#define STEPS_H
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static void hold(size_t mib);
static volatile char* ask(size_t bytes);
static void demand(size_t bytes);

static volatile char* volatile given;
static volatile char* volatile nowhere;

/* The compiler must not know that this never returns. */
static int dig(const volatile char* above, int depth) {
  volatile char room[512];
  room[0] = above[0];
  return depth < 0 ? 0 : dig(room, depth + 1) + room[0];
}

/* Maps pages that do not merge, until the number of mappings reaches the limit. */
static void crowd(void) {
  int protection = PROT_READ;
  while (mmap(NULL, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED)
    protection ^= PROT_READ;
}

/* Root is exempt from the task limit. */
static void allow_no_tasks(void) {
  const struct rlimit none = {0, 0};
  if (setrlimit(RLIMIT_NPROC, &none) != 0 || (geteuid() == 0 && setuid(65534) != 0)) exit(77);
}

static void* do_nothing(void* nothing) { return nothing; }

static void start_thread(void) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, do_nothing, NULL) == 0) exit(99);
}

static void start_process(void) {
  if (fork() >= 0) _exit(99);
}

/* Waits for a line of stdin, or at its end for a signal. */
static void wait_here(void) {
  printf("ready %d\n", getpid());
  fflush(stdout);
  while (getchar() == EOF) pause();
}

static void take(const char* step, size_t number) {
  if (strcmp(step, "hold") == 0) hold(number);
  if (strcmp(step, "ask") == 0) given = ask(number);
  if (strcmp(step, "demand") == 0) demand(number);
  if (strcmp(step, "wait") == 0) wait_here();
  if (strcmp(step, "use") == 0) given[number] = 1;
  if (strcmp(step, "crash") == 0) nowhere[number] = 1;
  if (strcmp(step, "abort") == 0) abort();
  if (strcmp(step, "dig") == 0) dig("x", 1);
  if (strcmp(step, "crowd") == 0) crowd();
  if (strcmp(step, "no_tasks") == 0) allow_no_tasks();
  if (strcmp(step, "thread") == 0) start_thread();
  if (strcmp(step, "fork") == 0) start_process();
  if (strcmp(step, "pause_ms") == 0) usleep((useconds_t)number * 1000);
  if (strcmp(step, "end") == 0) exit((int)number);
  while (strcmp(step, "grow") == 0) hold(1);
}

/* Another thread takes the remaining steps, and the main one ends. */
static void leave(char** words);

static void take_all(char** words) {
  for (; *words != NULL; ++words) {
    const char* const number = strchr(*words, ':');
    char step[16] = "";
    strncpy(step, *words, number != NULL ? (size_t)(number - *words) : sizeof step - 1);
    if (strcmp(step, "leave") == 0) return leave(words + 1);
    take(step, number != NULL ? strtoull(number + 1, NULL, 10) : 0);
  }
}

static void* take_rest(void* words) {
  take_all((char**)words);
  exit(0);
}

static void leave(char** words) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, take_rest, words) == 0) pthread_exit(NULL);
}

int main(int count, char** words) {
  if (count > 1) take_all(words + 1);
}
#endif
