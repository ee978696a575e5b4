/* Fails an allocation, or nears its limit, where a recorder must not wait for anything:
 * awkward CONTEXT ACTION. Exits with the status of the process that did it, 128 + N after signal N.
 */
#include <link.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "impossible_sizes.h"

/* The smallest that the C library allows. */
#ifdef __aarch64__
enum { kSmallStack = 128 * 1024 };
#else
enum { kSmallStack = 16 * 1024 };
#endif
enum { kMiB = 1 << 20 };

/* --- Actions -----------------------------------------------------------------------------------
 */

static int in_allocator; /* it must not be entered again */

static volatile char* ask(size_t bytes) {
  if (!in_allocator) return malloc(bytes);
  return mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

static void refuse(void) { ask(TOO_MUCH + 311); }
static void use_null(void) { ask(TOO_MUCH + 313)[0x10] = 1; }
static void grow(void) {
  for (int i = 0; i < 95; ++i) ask(kMiB);
}
static void (*deed)(void);

/* --- Contexts ----------------------------------------------------------------------------------
 */

static void nowhere(void) { deed(); }

static pthread_mutex_t own_lock = PTHREAD_MUTEX_INITIALIZER;
static void with_locks(void) {
  pthread_mutex_lock(&own_lock);
  flockfile(stdout);
  flockfile(stderr);
  deed();
  funlockfile(stderr);
  funlockfile(stdout);
  pthread_mutex_unlock(&own_lock);
}

static int in_callback(struct dl_phdr_info* info, size_t size, void* unused) {
  (void)info, (void)size, (void)unused;
  deed();
  return 1;
}
static void with_loader_lock(void) { dl_iterate_phdr(in_callback, NULL); }

static volatile sig_atomic_t interrupted;
static void interrupt(int number) {
  (void)number;
  if (interrupted++ == 0 || deed == refuse) deed();
}
/* Repeatedly, so that some signals arrive while the allocator's lock is held. */
static void with_allocator_lock(void) {
  in_allocator = 1;
  static char* blocks[64];
  signal(SIGALRM, interrupt);
  const struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
  setitimer(ITIMER_REAL, &often, NULL);
  for (unsigned i = 0; interrupted < 200; ++i) {
    free(blocks[i % 64]);
    blocks[i % 64] = malloc(1 + i % 5000);
  }
  setitimer(ITIMER_REAL, &never, NULL);
}

static void in_handler(void) {
  static char room[kSmallStack];
  const stack_t stack = {.ss_sp = room, .ss_size = sizeof room};
  sigaltstack(&stack, NULL);
  struct sigaction action = {.sa_handler = interrupt, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR1, &action, NULL);
  raise(SIGUSR1);
}

static void* of_thread(void* unused) {
  deed();
  return unused;
}
static void on_small_stack(void) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  if (pthread_attr_setstacksize(&attributes, kSmallStack) != 0) exit(90);
  pthread_t thread;
  if (pthread_create(&thread, &attributes, of_thread, NULL) != 0) exit(91);
  pthread_join(thread, NULL);
}

static pthread_key_t key;
static void at_thread_end(void* unused) {
  (void)unused;
  deed();
}
static void* with_key(void* unused) {
  pthread_setspecific(key, &key);
  return unused;
}
static void in_tls_destructor(void) {
  pthread_key_create(&key, at_thread_end);
  pthread_t thread;
  pthread_create(&thread, NULL, with_key, NULL);
  pthread_join(thread, NULL);
}

static void at_exit(void) { deed(); }
static void after_exit_began(void) {
  atexit(at_exit);
  exit(0);
}

static void end_as(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, 0) != child) exit(92);
  if (WIFSIGNALED(status)) exit(128 + WTERMSIG(status));
  if (WEXITSTATUS(status) != 0) exit(WEXITSTATUS(status));
}
static void become_true(void) {
  execl("/bin/true", "true", NULL);
  _exit(93);
}
static void before_exec(void) {
  const pid_t child = fork();
  if (child == 0) {
    deed();
    become_true();
  }
  end_as(child);
}
static void before_exec_in_vfork(void) {
  const pid_t child = vfork();
  if (child == 0) {
    deed();
    become_true();
  }
  end_as(child);
}

int main(int count, char** words) {
  static const struct {
    const char* word;
    void (*function)(void);
  } kPlaces[] = {{"main", nowhere},
                 {"locks", with_locks},
                 {"loader", with_loader_lock},
                 {"allocator", with_allocator_lock},
                 {"handler", in_handler},
                 {"small_stack", on_small_stack},
                 {"tls", in_tls_destructor},
                 {"exit", after_exit_began},
                 {"fork", before_exec},
                 {"vfork", before_exec_in_vfork}},
    kDeeds[] = {{"refuse", refuse}, {"use_null", use_null}, {"grow", grow}};
  if (count < 3) return 2;
  for (size_t i = 0; i < sizeof kDeeds / sizeof *kDeeds; ++i)
    if (strcmp(kDeeds[i].word, words[2]) == 0) deed = kDeeds[i].function;
  for (size_t i = 0; i < sizeof kPlaces / sizeof *kPlaces; ++i)
    if (strcmp(kPlaces[i].word, words[1]) == 0) kPlaces[i].function();
  return 0;
}
