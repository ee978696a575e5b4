// A library that is loaded after the program was attached to.
#include <stdlib.h>

__attribute__((visibility("default"))) void* plugin_allocate(size_t bytes) { return malloc(bytes); }
