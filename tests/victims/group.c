/* A program of several processes: group fork|spawn|vfork WORKERS MIB parent|worker. Each worker
 * holds MIB, then the parent or one worker requests too much. Prints the workers' pids, and last
 * that of the process whose request failed. */
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void ask_too_much(void) {
  void* volatile refused = malloc((size_t)1 << 46);
  if (refused != NULL) exit(9);
}

static void send_pid(int ready) {
  const pid_t self = getpid();
  if (write(ready, &self, sizeof self) != sizeof self) exit(9);
}

/* The worker that reads a byte requests too much. The end of the pipe ends all workers. */
static void work(int go, int ready, size_t mib) {
  char* held = malloc(mib << 20);
  memset(held, 1, mib << 20);
  send_pid(ready);
  for (char byte; read(go, &byte, 1) == 1;) {
    ask_too_much();
    send_pid(ready);
  }
  exit(held[1] - 1);
}

static void start(const char* how, int go[2], int ready, char* mib) {
  char in[16], out[16];
  snprintf(in, sizeof in, "%d", go[0]);
  snprintf(out, sizeof out, "%d", ready);
  char* const words[] = {"group", in, out, mib, NULL};
  pid_t pid;
  if (strcmp(how, "spawn") == 0) {
    if (posix_spawn(&pid, "/proc/self/exe", NULL, NULL, words, environ) != 0) exit(9);
  } else if (strcmp(how, "vfork") == 0) {
    if (vfork() == 0) {
      execv("/proc/self/exe", words);
      _exit(9);
    }
  } else if (fork() == 0) {
    close(go[1]);
    work(go[0], ready, (size_t)atoi(mib));
  }
}

static pid_t next_of(int ready) {
  pid_t pid = 0;
  if (read(ready, &pid, sizeof pid) != sizeof pid) exit(9);
  return pid;
}

int main(int argc, char** argv) {
  if (argc == 4) work(atoi(argv[1]), atoi(argv[2]), (size_t)atoi(argv[3]));
  int go[2], ready[2];
  if (pipe(go) != 0 || pipe(ready) != 0) return 9;
  fcntl(go[1], F_SETFD, FD_CLOEXEC); /* only the parent has it: closing it ends the workers */
  const int workers = atoi(argv[2]);
  for (int i = 0; i < workers; ++i) start(argv[1], go, ready[1], argv[3]);
  for (int i = 0; i < workers; ++i) printf("%d\n", next_of(ready[0]));
  pid_t refused = getpid();
  if (strcmp(argv[4], "parent") == 0) {
    ask_too_much();
  } else {
    if (write(go[1], "", 1) != 1) return 9;
    refused = next_of(ready[0]);
  }
  printf("%d\n", refused);
  close(go[1]);
  for (int status; wait(&status) > 0;)
    if (status != 0) return 9;
}
