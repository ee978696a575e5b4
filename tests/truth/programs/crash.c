// No request is refused: a plain bug ends the program. crash WHAT.
#include <assert.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>

#include "truth.h"

static volatile long sink;

__attribute__((noinline)) static long dig(long depth) {
  volatile char frame[8192];
  frame[0] = (char)depth;
  return dig(depth + 1) + frame[0];
}
static void* null_in_thread(void* argument) { return (void*)(sink = *(volatile long*)argument); }

int main(int argc, char** argv) {
  const char* what = argv[1];
  char* held = hold(24);
  nap_ms(120);
  if (!strcmp(what, "null")) sink = *(volatile long*)(sink & 0);
  if (!strcmp(what, "thread")) {
    pthread_t thread;
    pthread_create(&thread, NULL, null_in_thread, NULL);
    pthread_join(thread, NULL);
  }
  if (!strcmp(what, "overflow")) sink = dig(0);
  if (!strcmp(what, "assert")) assert(held == NULL);
  if (!strcmp(what, "divide")) sink = 5 / (int)(sink & 0);
  if (!strcmp(what, "trap")) __builtin_trap();
  if (!strcmp(what, "free_bad")) free(held + 16);
  if (!strcmp(what, "after_free")) {
    char* map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    munmap(map, 4096);
    *(volatile char*)map = 1;
  }
  if (!strcmp(what, "truncated")) {
    FILE* file = tmpfile();
    ftruncate(fileno(file), 8192);
    volatile char* map = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    ftruncate(fileno(file), 0);
    map[4096] = 1;
  }
  if (!strcmp(what, "kill_self")) kill(getpid(), SIGKILL);
  if (!strcmp(what, "term_self")) kill(getpid(), SIGTERM);
  if (!strcmp(what, "alarm")) {
    alarm(1);
    pause();
  }
  if (!strcmp(what, "cpu")) {
    raise(SIGXCPU);
  }
  if (!strcmp(what, "seccomp")) {
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT);
    getppid();
  }
  if (!strcmp(what, "quit")) raise(SIGQUIT);
  if (!strcmp(what, "exit3")) return 3;
  return 0;
}
