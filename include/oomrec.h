/* oomrec from inside a program: mark what it is doing, ask for a bundle, move the limit.
 *
 * Nothing needs to be linked. The functions are weak: in a program that is not recorded they are
 * null pointers, so ask before calling:
 *
 *     #include <oomrec.h>
 *
 *     if (oomrec_context_push) oomrec_context_push("epoch 3");
 *     train();
 *     if (oomrec_context_pop) oomrec_context_pop();
 *
 * or write OOMREC_CALL(oomrec_context_push, "epoch 3"), which is 0 where there is no recorder.
 * Compile with -fPIE (the default of most distributions) or -fPIC.
 *
 * Every function may be called from any thread and from signal handlers, allocates nothing and
 * leaves errno alone.
 */
#ifndef OOMREC_H
#define OOMREC_H

#include <stdint.h>

#define OOMREC_API_VERSION 2

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these functions: OOMREC_API_VERSION of the library that is loaded. oomrec_mark is
 * there from 2 on. */
__attribute__((weak)) int oomrec_api_version(void);

/* 1 while events are recorded, else 0: switched off, or given up. */
__attribute__((weak)) int oomrec_is_active(void);

/* Writes a bundle now. `reason`: a few words for its metadata; NULL for none. Returns 1 when it was
 * written, 0 when not: not active, or the disk is full. Takes milliseconds, at most a few seconds.
 */
__attribute__((weak)) int oomrec_dump(const char* reason);

/* Replaces the soft limit of this process by `bytes`; 0 lifts it. */
__attribute__((weak)) void oomrec_set_limit(uint64_t bytes);

/* Labels what this thread does from here to the matching pop, such as a step or a request. Labels
 * nest; failures and bundles carry the innermost. `text` is copied. */
__attribute__((weak)) void oomrec_context_push(const char* text);
__attribute__((weak)) void oomrec_context_pop(void);

/* Marks this moment on the time line, such as the end of an epoch. The first 256 bytes of `text`
 * are copied. There is room for 4,096 marks. The recording counts those beyond, and
 * those of a signal handler that interrupts the recorder. */
__attribute__((weak)) void oomrec_mark(const char* text);

#ifdef __cplusplus
}
#endif

/* Calls `function` when a recorder is there. */
#define OOMREC_CALL(function, ...) ((function) ? ((void)(function)(__VA_ARGS__), 1) : 0)

#endif
