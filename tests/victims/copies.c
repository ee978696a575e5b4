/* Copies texts by strdup, strndup and realpath, and frees all but the last 10,000 of each kind. */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { kRounds = 5, kTexts = 10000, kLength = 2000 };
static char* volatile copies[3][kTexts];

int main(void) {
  static char text[kLength + 1];
  memset(text, 'x', kLength);
  for (int round = 0; round < kRounds; ++round)
    for (int i = 0; i < kTexts; ++i) {
      for (int kind = 0; kind < 3; ++kind) free(copies[kind][i]);
      copies[0][i] = strdup(text);
      copies[1][i] = strndup(text, kLength / 2);
      copies[2][i] = realpath("/proc/self/..", NULL);
      if (!copies[0][i] || !copies[1][i] || !copies[2][i]) return 1;
    }
  char resolved[PATH_MAX];
  if (realpath("/proc", resolved) != resolved || realpath("/no such file", NULL)) return 2;
  return printf("%zu %zu %s\n", strlen(copies[0][0]), strlen(copies[1][0]), copies[2][0]) < 0;
}
