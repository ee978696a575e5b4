/* The C interface of oomrec: mark what the program is doing, request a bundle, change the limit.
 *
 * Nothing needs to be linked. The functions are weak: in a program that is not recorded they are
 * null pointers, so check before calling:
 *
 *     #include <oomrec.h>
 *
 *     if (oomrec_context_push) oomrec_context_push("epoch 3");
 *     train();
 *     if (oomrec_context_pop) oomrec_context_pop();
 *
 * or write OOMREC_CALL(oomrec_context_push, "epoch 3"), which is 0 without the recorder.
 * Compile with -fPIE (the default of most distributions) or -fPIC.
 *
 * Every function may be called from any thread and from signal handlers, allocates nothing and
 * preserves errno.
 */
#ifndef OOMREC_H
#define OOMREC_H

#include <stdint.h>

#define OOMREC_API_VERSION 3

#ifdef __cplusplus
extern "C" {
#endif

/* OOMREC_API_VERSION of the loaded library. oomrec_mark exists from version 2 on, oomrec_usage and
 * everything after it from version 3 on. */
__attribute__((weak)) int oomrec_api_version(void);

/* 1 while events are recorded. 0: the recorder is switched off, or has switched itself off. */
__attribute__((weak)) int oomrec_is_active(void);

/* Writes a bundle now. `reason`: a few words for its metadata; NULL for none. Returns 1 if it was
 * written; 0: not active, or the disk is full. Takes milliseconds, at most a few seconds. */
__attribute__((weak)) int oomrec_dump(const char* reason);

/* Sets the soft limit of this process to `bytes`; 0 removes it. */
__attribute__((weak)) void oomrec_set_limit(uint64_t bytes);

/* From now on, bundles of this process and its children are written to `directory`, an absolute
 * path that is used literally. At most `max_dumps` bundles and `max_total_mb` MiB are kept there;
 * 0: no limit. NULL: the directory from the process' start. Returns 1; 0: the path is not absolute
 * or too long. */
__attribute__((weak)) int oomrec_set_dumps(const char* directory, uint32_t max_dumps,
                                           uint64_t max_total_mb);

/* Labels what this thread does until the matching pop, such as a step or a request. Labels nest;
 * failures and bundles carry the innermost. `text` is copied. */
__attribute__((weak)) void oomrec_context_push(const char* text);
__attribute__((weak)) void oomrec_context_pop(void);

/* Marks this moment on the timeline, such as the end of an epoch. The first 256 bytes of `text`
 * are copied. A recording keeps the latest 2,048 marks, and as many of the older ones. The rest are
 * only counted, as are those of a signal handler that interrupts the recorder. */
__attribute__((weak)) void oomrec_mark(const char* text);

/* --- From version 3 on ---------------------------------------------------------------------------
 *
 * All sizes are in bytes. A struct that can grow starts with its size: set `size` to sizeof the
 * struct before the call, and the rest to zero. Fields that an older library does not know stay
 * unchanged. Returned texts are NUL-terminated; those that do not fit are cut at a whole character.
 */

struct oomrec_space_usage {
  char name[16];                   /* "heap", "map", "cuda", ...: a space that has been used */
  uint64_t live_bytes, peak_bytes; /* usable bytes */
  uint64_t allocated_bytes;        /* since the start, as requested */
  uint64_t live_count;
};

struct oomrec_device_usage {
  char kind[8];      /* "cuda", "hip" */
  int32_t ordinal;   /* the driver's number */
  uint32_t reserved; /* 0 */
  char uuid[48], name[64];
  uint64_t total_bytes, free_bytes, used_bytes; /* last reported by the driver: all users */
  uint64_t counted_bytes;                       /* used by this process */
  uint64_t limit_bytes;                         /* --limit-gpu; 0: none */
};

struct oomrec_usage_info {
  uint32_t size;
  uint32_t space_count, device_count, reserved;
  uint64_t live_bytes, peak_bytes; /* sum of the host's spaces */
  uint64_t rss_bytes;
  /* Of the host's nearest limit; limit_bytes 0: none. */
  uint64_t limit_bytes, used_of_limit_bytes, headroom_bytes;
  char limit_kind[16]; /* "soft", "rlimit_as", "cgroup" or "" */
  struct oomrec_space_usage spaces[16];
  struct oomrec_device_usage devices[16];
};

/* Reads the current memory usage and limits. Returns 1; 0: nothing is recorded. Takes a few
 * microseconds. */
__attribute__((weak)) int oomrec_usage(struct oomrec_usage_info* usage);

/* The absolute path of this process' newest bundle. Returns its length without the NUL; 0: no
 * bundle, or the path does not fit in `bytes`. */
__attribute__((weak)) uint32_t oomrec_last_bundle(char* path, uint32_t bytes);

/* The number of this thread's latest failed allocation, which increases with each; 0: none yet. */
__attribute__((weak)) uint32_t oomrec_last_failure(void);

/* The number of the latest failed allocation of all threads. */
__attribute__((weak)) uint32_t oomrec_failures(void);

/* The absolute path of the bundle about this thread's latest failed allocation, or about an earlier
 * one of the same kind. Returns its length without the NUL; 0: no bundle, or the path does not fit
 * in `bytes`. */
__attribute__((weak)) uint32_t oomrec_failure_bundle(char* path, uint32_t bytes);

/* An exception because memory has run out. A NULL text becomes null in the JSON. At most the first
 * 64 KiB of each text are used; objects_json may have 1 MiB. */
struct oomrec_exception_info {
  uint32_t size;
  uint32_t since; /* oomrec_failures() before the operation that raised it */
  const char *type, *module, *message, *traceback;
  const char* context;       /* NULL: the innermost label */
  const char* metadata_json; /* a JSON object: becomes custom_metadata unchanged */
  const char* objects_json;  /* becomes objects.json of the bundle; NULL: no such file */
  /* "cuda" or "rocm" if a device is short of memory; used if no failed allocation shows it. NULL:
   * the host, or unknown. */
  const char* backend;
  /* 1: another thread may have raised it first, for example a worker of a thread pool. If this
   * thread had no failed allocation, the newest of all threads counts, unless an exception was
   * already reported for it or it is more than ten seconds old. */
  uint32_t any_thread;
};

/* Reports an exception. If an allocation of this thread failed after `since`, completes the bundle
 * of that failure (and writes it first, if there is none): metadata.json gets exception_type,
 * exception_module, exception_message, exception_traceback, context and custom_metadata. Otherwise
 * writes a bundle with the trigger `exception`. `path` receives the bundle's path and may be NULL.
 * Returns 1: written; 2: the bundle exists, but some or all of these texts are missing, because the
 * disk is full or metadata_json is not an object; 0: no bundle. Takes milliseconds, at most a few
 * seconds. */
__attribute__((weak)) int oomrec_exception(const struct oomrec_exception_info* exception,
                                           char* path, uint32_t bytes);

/* Like oomrec_dump, with `metadata_json` as custom_metadata; `path` receives the bundle's path. */
__attribute__((weak)) int oomrec_dump_with(const char* reason, const char* metadata_json,
                                           char* path, uint32_t bytes);

/* Notifications. A counter increases, and threads that wait for it wake within milliseconds, when
 * an allocation fails, when a bundle has been written, and when memory usage crosses one of the
 * registered percentages: of the host's nearest limit, or of a device's memory.
 *
 * Registers `percent` (1 to 100), or removes it if `on` is 0. Returns 1; 0: all 8 slots are in use.
 */
__attribute__((weak)) int oomrec_notify_at(uint32_t percent, int on);

/* Returns the counter: at once if it differs from `seen`, else when it increases, after
 * `timeout_ms`, or when a signal arrives. Start with a timeout of 0 to get its value. */
__attribute__((weak)) uint32_t oomrec_wait(uint32_t seen, uint32_t timeout_ms);

/* Increases the counter, to wake the program's own waiting threads. */
__attribute__((weak)) void oomrec_wake(void);

/* A live block. */
struct oomrec_block {
  uint32_t size;
  uint32_t node; /* its stack: for oomrec_stack_text */
  uint64_t address, bytes;
  uint64_t birth_realtime_ns; /* to the second; 0: unknown */
  char space[16];
};

/* Finds the block that contains `address`. Returns 1 if found. `address` may be anywhere in a block
 * of 64 KiB or more, but must be the start of a smaller one. In sampled mode most small blocks are
 * unknown. */
__attribute__((weak)) int oomrec_block_of(uint64_t address, struct oomrec_block* block);

/* Writes the stack `node` as text, one frame per line, innermost first ("train.py:42 make_batch"):
 * Python frames and exported names, as many as fit. Returns the length without the NUL. */
__attribute__((weak)) uint32_t oomrec_stack_text(uint32_t node, char* text, uint32_t bytes);

/* --- High-water marks -------------------------------------------------------------------------
 *
 * The highest live bytes since the latest oomrec_watermark_begin(), relative to that moment; there
 * is one watermark at a time. `own_thread` 0: of the process, heap and mappings as counted by the
 * soft limit. Otherwise of the thread that called oomrec_watermark_begin(): the bytes it allocated
 * less those it freed (0 on other threads). Each thread may briefly have had 64 KiB more. */
__attribute__((weak)) void oomrec_watermark_begin(void);
__attribute__((weak)) uint64_t oomrec_watermark(int own_thread);

/* --- Loaded later ------------------------------------------------------------------------------
 *
 * A recorder that the program loads with dlopen is too late to see allocations: it interposes
 * nothing, and records nothing until oomrec_start(). From then on it records what does not need
 * hooks: the process' memory, marks, the figures given to oomrec_note_device(), requested bundles.
 *
 * Starts such a recording, with options from the environment. Returns 1: started, or already
 * recording. */
__attribute__((weak)) int oomrec_start(void);

/* Describes what is not recorded; "" if nothing is missing. */
__attribute__((weak)) const char* oomrec_missing(void);

/* Adds a point to the timeline, if one is due (at most ten per second). Call it regularly in such
 * a process, which has no events to trigger it. */
__attribute__((weak)) void oomrec_tick(void);

/* Records a framework's figures about its device; only in such a process. `kind`: "cuda" or
 * "hip". */
__attribute__((weak)) void oomrec_note_device(const char* kind, int32_t ordinal, const char* name,
                                              uint64_t total_bytes, uint64_t free_bytes,
                                              uint64_t allocated_bytes, uint64_t reserved_bytes);

#ifdef __cplusplus
}
#endif

/* OOMREC_CALL(function, argument...): calls the function if the recorder is present. There are two
 * forms because in C99 and C++11 a macro's `...` cannot be empty. */
#define OOMREC_CALL(...)                                                                          \
  OOMREC_PICK_(__VA_ARGS__, OOMREC_WITH_, OOMREC_WITH_, OOMREC_WITH_, OOMREC_WITH_, OOMREC_WITH_, \
               OOMREC_WITH_, OOMREC_WITH_, OOMREC_ALONE_, 0)                                      \
  (__VA_ARGS__)
#define OOMREC_PICK_(a, b, c, d, e, f, g, h, call, ...) call
#define OOMREC_WITH_(function, ...) ((function) ? ((void)(function)(__VA_ARGS__), 1) : 0)
#define OOMREC_ALONE_(function) ((function) ? ((void)(function)(), 1) : 0)

#endif
