// Becomes nobody, as a server does, and then ends in some way. changes_user HOW END MIB.
#define _GNU_SOURCE
#include <grp.h>
#include <sys/wait.h>

#include "truth.h"

#define NOBODY 65534

static void become_nobody(const char* how) {
  int failed = setgroups(0, NULL);
  if (!strcmp(how, "setuid")) failed |= setgid(NOBODY) | setuid(NOBODY);
  if (!strcmp(how, "setresuid"))
    failed |= setresgid(NOBODY, NOBODY, NOBODY) | setresuid(NOBODY, NOBODY, NOBODY);
  if (!strcmp(how, "seteuid")) failed |= setegid(NOBODY) | seteuid(NOBODY);
  if (failed) exit(99);
}

static int ends(const char* end, size_t mib) {
  if (!strcmp(end, "null")) *(volatile char*)malloc((size_t)1 << 46) = 1;
  if (!strcmp(end, "refused")) return malloc((size_t)1 << 46) ? 0 : 3;
  if (!strcmp(end, "grows"))
    for (size_t i = 0; i < mib; ++i) hold(1), nap_ms(3);
  ready();
  if (!strcmp(end, "rests"))
    for (;;) pause();
  return 0;
}

int main(int count, char** words) {
  hold(24);
  const char* how = words[1];
  const size_t mib = (size_t)atol(words[3]);
  if (strcmp(how, "worker") != 0) {
    become_nobody(how);
    return ends(words[2], mib);
  }
  const pid_t worker = fork();  // its parent stays root
  if (worker == 0) {
    become_nobody("setuid");
    exit(ends(words[2], mib));
  }
  int status = 0;
  waitpid(worker, &status, 0);
  return count == 0 || status == 0 ? 0 : 1;
}
