/* tasks thread|fork: creates waiting tasks until one fails, at most 200, and prints their
 * number.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void* stay(void* nothing) {
  for (;;) pause();
  return nothing;
}

static int one_more(int by_fork) {
  pthread_t thread;
  if (!by_fork) return pthread_create(&thread, NULL, stay, NULL);
  const pid_t child = fork();
  if (child == 0) stay(NULL);
  return child > 0 ? 0 : errno;
}

int main(int count, char** words) {
  const int by_fork = count > 1 && strcmp(words[1], "fork") == 0;
  int made = 0, error = 0;
  while (made < 200 && (error = one_more(by_fork)) == 0) ++made;
  printf("%d %s\n", made, error == EAGAIN ? "EAGAIN" : strerror(error));
  fflush(stdout);
  signal(SIGTERM, SIG_IGN);
  if (by_fork && made != 0) kill(0, SIGTERM);
}
