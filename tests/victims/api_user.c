/* Uses the C API without linking it: works with and without a recorder. */
#include <stdio.h>

#include "include/oomrec.h"

int main(void) {
  OOMREC_CALL(oomrec_context_push, "epoch 3");
  printf("recorder %s\n", oomrec_api_version && oomrec_is_active() ? "active" : "absent");
  printf("dumped %d\n", oomrec_dump ? oomrec_dump("asked by the program") : -1);
  OOMREC_CALL(oomrec_context_pop);
  OOMREC_CALL(oomrec_set_limit, 0);
}
