/* Ends in the given way with status 7, after the given number of failures. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "impossible_sizes.h"

/* Each failure has a different stack and a different size. */
__attribute__((noinline)) static int refuse(int count) {
  if (count == 0) return 0;
  const int deeper = refuse(count - 1);
  void* volatile block = malloc(TOO_MUCH + 1000 + (size_t)count);
  return deeper + (block == NULL);
}

static void* exit_in_thread(void* unused) {
  exit(7);
  return unused;
}

static void exec_nothing(char* const* arguments) {
  execv("/no/such/program", arguments);
  _exit(7);
}

int main(int count, char** arguments) {
  const char* const way = arguments[1];
  void* volatile held = malloc(40 << 20); /* enough for a bundle if the process is killed */
  memset(held, 1, 100);
  const int refused = count > 2 ? refuse(atoi(arguments[2])) : 0;
  if (write(1, "ends\n", 5) != 5 || (count > 2 && refused != atoi(arguments[2]))) return 1;
  pthread_t thread;
  char* const again[] = {arguments[0], "return", NULL};
  if (strcmp(way, "exit") == 0) exit(7);
  if (strcmp(way, "_exit") == 0) _exit(7);
  if (strcmp(way, "_Exit") == 0) _Exit(7);
  if (strcmp(way, "quick_exit") == 0) quick_exit(7);
  if (strcmp(way, "exit_group") == 0) syscall(SYS_exit_group, 7);
  if (strcmp(way, "thread") == 0 && pthread_create(&thread, NULL, exit_in_thread, NULL) == 0)
    pause();
  if (strcmp(way, "exec_failed") == 0) exec_nothing(arguments);
  if (strcmp(way, "exec_failed_killed") == 0) execv("/no/such/program", arguments);
  if (strcmp(way, "exec") == 0) execv(arguments[0], again);
  if (strcmp(way, "exec_killed") == 0) {
    char* const killed[] = {arguments[0], "killed", NULL};
    execv(arguments[0], killed);
  }
  if (strstr(way, "killed")) raise(SIGKILL);
  return 7;
}
