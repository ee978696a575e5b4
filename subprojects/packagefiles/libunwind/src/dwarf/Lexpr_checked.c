/* Lexpr.c, but what an expression dereferences is read by access_mem, which may refuse: the CFI of
   the interrupted instruction can be wrong, and the address then is any number. */
#define UNW_LOCAL_ONLY
#include <libunwind.h>
#include "dwarf_i.h"

static inline int checked_readw(unw_addr_space_t as, unw_accessors_t* a, unw_word_t* addr,
                                unw_word_t* val, void* arg) {
  return (*a->access_mem)(as, *addr, val, 0, arg);
}

#define dwarf_readw checked_readw /* in Gexpr.c used by DW_OP_deref alone */
#include "Gexpr.c"
