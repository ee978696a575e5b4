/* A library whose names stand in the older kind of hash table only, as in some vDSOs: linked with
 * --hash-style=sysv. */
#include <unistd.h>

int old_hash_data = 1;

int old_hash_first(void) { return old_hash_data; }

int old_hash_second(void) { return 2; }

/* Longer than the pieces in which names are compared; and an import, which is no definition. */
int old_hash_of_a_function_with_a_very_long_name_indeed(void) { return (int)getppid(); }
