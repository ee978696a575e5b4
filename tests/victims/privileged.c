/* Prints whether it runs with another user's rights, and whether a recorder is active. */
#include <stdio.h>
#include <unistd.h>

#include "include/oomrec.h"

int main(void) {
  printf("%s, %s\n", getuid() != geteuid() ? "privileged" : "plain",
         oomrec_is_active && oomrec_is_active() ? "recorded" : "not recorded");
}
