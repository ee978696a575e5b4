// Preloaded beside the recorder: holds a program before its first line until a file exists, so that
// a watcher has seen it. Only the first process waits.
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

__attribute__((constructor)) static void wait_at_gate(void) {
  const char* gate = getenv("TRUTH_GATE");
  if (!gate) return;
  char name[4096], pid[16];
  snprintf(name, sizeof name, "%s.pid", gate);
  if (access(name, F_OK) == 0) return;
  char draft[4096];
  snprintf(draft, sizeof draft, "%s.draft", gate);
  int file = open(draft, O_WRONLY | O_CREAT, 0644);
  if (file < 0) return;
  if (write(file, pid, snprintf(pid, sizeof pid, "%d\n", getpid())) < 0) return;
  close(file);
  rename(draft, name);
  for (int i = 0; i < 2000 && access(gate, F_OK) != 0; ++i)
    nanosleep(&(struct timespec){0, 5000000}, NULL);
}
