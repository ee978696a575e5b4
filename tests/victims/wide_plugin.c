/* A library that maps a GiB, for a program with less room than that. */
static char wide[1 << 30];
char* wide_plugin(void) { return wide; }
