// Allocates without a pause, while the handler of a timer forks. Each child returns from the
// handler into whatever it interrupted, goes on for a while, and ends well. Exits with the number
// of children that did not.
#include <signal.h>
#include <stdlib.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { FORKS = 300 };
static volatile sig_atomic_t forks, bad, is_child;

static void on_timer(int signal) {
  (void)signal;
  if (is_child || forks == FORKS) return;
  const pid_t child = fork();
  if (child == 0) {
    is_child = 1;
    return;
  }
  int status = 0;
  ++forks;
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0) ++bad;
}

int main(void) {
  const struct sigaction action = {.sa_handler = on_timer, .sa_flags = SA_RESTART};
  const struct itimerval every = {{0, 1000}, {0, 1000}};
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &every, NULL);
  for (unsigned i = 0; forks != FORKS; ++i) {
    free(malloc(100 + i % 50));
    if (!is_child) continue;
    for (unsigned bytes = 0; bytes != 2000; ++bytes) free(malloc(bytes));
    _exit(0);
  }
  return bad;
}
