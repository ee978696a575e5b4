// mimalloc serves every `new` of the command: an analysis makes millions of small, short-lived
// nodes.
#include <mimalloc-new-delete.h>
