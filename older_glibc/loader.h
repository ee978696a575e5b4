// The loader in a program that is not linked with libdl, on a glibc before 2.34.
#pragma once

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(hidden)

// Whether the program is such a one: dlvsym finds nothing then, and this is dlsym, called by us.
int oomrec_lacks_libdl(void);
void* oomrec_dlsym_without_libdl(void* library, const char* name);

// Loads libdl, if there is such a file, into the program; called in a constructor.
void oomrec_load_libdl(void);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
