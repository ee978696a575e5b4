// Holds some memory, lets a neighbour come, and then grows. rests_then_grows MIB.
#include "truth.h"

int main(int argc, char** argv) {
  hold(24);
  ready();
  nap_ms(1500);
  for (int i = 0; i < atoi(argv[1]) * 4; ++i) hold(1);
  return 0;
}
