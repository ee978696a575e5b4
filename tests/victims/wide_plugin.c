/* A library that maps 1 GiB, for a program with less address space. */
static char wide[1 << 30];
char* wide_plugin(void) { return wide; }
