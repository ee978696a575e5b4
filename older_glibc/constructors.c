// Until glibc 2.34, main's caller ran a program's constructors by a function that was linked into
// the program. The start file of a newer glibc no longer brings it: versions.S passes this one.
typedef void Constructor(int, char**, char**);
extern Constructor* const __init_array_start[] __attribute__((visibility("hidden")));
extern Constructor* const __init_array_end[] __attribute__((visibility("hidden")));
Constructor oomrec_run_constructors __attribute__((visibility("hidden"), used));

void oomrec_run_constructors(int count, char** arguments, char** environment) {
  for (Constructor* const* next = __init_array_start; next != __init_array_end; ++next)
    (*next)(count, arguments, environment);
}
