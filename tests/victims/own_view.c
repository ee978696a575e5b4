/* Prints a program's view of itself, to compare with and without the recorder. */
#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

static int by_text(const void* a, const void* b) { return strcmp(*(char**)a, *(char**)b); }

/* Without SigQ, which counts pending signals of all processes of the user. */
static void print_lines_of_status(void) {
  FILE* status = fopen("/proc/self/status", "re");
  char line[256];
  while (fgets(line, sizeof line, status)) {
    const int of_signals = strncmp(line, "Sig", 3) == 0 && strncmp(line, "SigQ", 4) != 0;
    if (strncmp(line, "Threads", 7) == 0 || of_signals || strncmp(line, "Shd", 3) == 0)
      fputs(line, stdout);
  }
  fclose(status);
}

static void print_descriptors(void) {
  DIR* directory = opendir("/proc/self/fd");
  int count = 0;
  for (struct dirent* entry; (entry = readdir(directory));) count += entry->d_name[0] != '.';
  closedir(directory);
  printf("descriptors %d, next is %d\n", count, dup(0));
}

int main(void) {
  for (int i = 0; i < 10000; ++i) free(malloc((size_t)i * 7));
  print_lines_of_status();
  print_descriptors();
  for (int number = 1; number < NSIG; ++number) {
    struct sigaction action;
    if (sigaction(number, NULL, &action) == 0 && action.sa_handler != SIG_DFL)
      printf("signal %d: %s\n", number, action.sa_handler == SIG_IGN ? "ignored" : "handled");
  }
  struct itimerval timer;
  getitimer(ITIMER_REAL, &timer);
  printf("timer %ld\n", timer.it_value.tv_sec + timer.it_value.tv_usec);
  printf("children %s\n", waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD ? "none" : "some");
  char directory[4096];
  printf("in %s\n", getcwd(directory, sizeof directory));
  size_t count = 0;
  while (environ[count]) ++count;
  qsort(environ, count, sizeof *environ, by_text);
  for (size_t i = 0; i < count; ++i) puts(environ[i]);
  printf("errno %d\n", errno == ECHILD);
  return 0;
}
