/* Four threads spawn and vfork existing and missing programs. */
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static char* const shell[] = {"sh", "-c", "exit 5", NULL};
static char* const nobody[] = {"/nonexistent", NULL};
static int wrong;

static pid_t start(int kind) {
  pid_t child = 0;
  switch (kind) {
    case 0:
      posix_spawn(&child, "/bin/sh", NULL, NULL, shell, environ);
      return child;
    case 1:
      posix_spawnp(&child, "sh", NULL, NULL, shell, environ);
      return child;
    case 2:
      child = vfork();
      if (child == 0) {
        execv("/bin/sh", shell);
        _exit(1);
      }
      return child;
    default:
      child = vfork();
      if (child == 0) {
        execv(nobody[0], nobody);
        _exit(5);
      }
      return child;
  }
}

static void* spawn_and_wait(void* unused) {
  for (int i = 0; i < 60; ++i) {
    int status = 0;
    free(malloc(70000));
    const pid_t child = start(i % 4);
    if (waitpid(child, &status, 0) != child || WEXITSTATUS(status) != 5)
      __atomic_add_fetch(&wrong, 1, __ATOMIC_RELAXED);
  }
  return unused;
}

int main(void) {
  pthread_t threads[4];
  for (int i = 0; i < 4; ++i) pthread_create(&threads[i], NULL, spawn_and_wait, NULL);
  for (int i = 0; i < 4; ++i) pthread_join(threads[i], NULL);
  printf("%d wrong\n", wrong);
}
