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

#define OOMREC_API_VERSION 3

#ifdef __cplusplus
extern "C" {
#endif

/* The version of these functions: OOMREC_API_VERSION of the library that is loaded. oomrec_mark is
 * there from 2 on, oomrec_usage and all that follows it from 3 on. */
__attribute__((weak)) int oomrec_api_version(void);

/* 1 while events are recorded, else 0: switched off, or given up. */
__attribute__((weak)) int oomrec_is_active(void);

/* Writes a bundle now. `reason`: a few words for its metadata; NULL for none. Returns 1 when it was
 * written, 0 when not: not active, or the disk is full. Takes milliseconds, at most a few seconds.
 */
__attribute__((weak)) int oomrec_dump(const char* reason);

/* Replaces the soft limit of this process by `bytes`; 0 lifts it. */
__attribute__((weak)) void oomrec_set_limit(uint64_t bytes);

/* From now on bundles of this process and of its children go to `directory`, an absolute path that
 * is taken as it is, where the newest `max_dumps` and `max_total_mb` MiB stay; 0: without bound.
 * NULL: as the process was started. 1: done; 0: the path is not absolute or too long. */
__attribute__((weak)) int oomrec_set_dumps(const char* directory, uint32_t max_dumps,
                                           uint64_t max_total_mb);

/* Labels what this thread does from here to the matching pop, such as a step or a request. Labels
 * nest; failures and bundles carry the innermost. `text` is copied. */
__attribute__((weak)) void oomrec_context_push(const char* text);
__attribute__((weak)) void oomrec_context_pop(void);

/* Marks this moment on the time line, such as the end of an epoch. The first 256 bytes of `text`
 * are copied. There is room for 4,096 marks. The recording counts those beyond, and
 * those of a signal handler that interrupts the recorder. */
__attribute__((weak)) void oomrec_mark(const char* text);

/* --- From version 3 on ---------------------------------------------------------------------------
 *
 * All sizes are bytes. A struct that can grow begins with its own size: set `size` to sizeof of it
 * before the call, the rest to zero; fields that an older library does not know stay as they are.
 * Texts that come out are NUL-terminated and cut at a whole character where they do not fit. */

struct oomrec_space_usage {
  char name[16];                   /* "heap", "map", "cuda", ...: a space that was ever used */
  uint64_t live_bytes, peak_bytes; /* usable bytes */
  uint64_t allocated_bytes;        /* ever, as asked for */
  uint64_t live_count;
};

struct oomrec_device_usage {
  char kind[8];      /* "cuda", "hip" */
  int32_t ordinal;   /* the driver's number */
  uint32_t reserved; /* 0 */
  char uuid[48], name[64];
  uint64_t total_bytes, free_bytes, used_bytes; /* as the driver told last: used by anyone */
  uint64_t counted_bytes;                       /* what this process holds */
  uint64_t limit_bytes;                         /* of --limit-gpu; 0: none */
};

struct oomrec_usage_info {
  uint32_t size;
  uint32_t space_count, device_count, reserved;
  uint64_t live_bytes, peak_bytes; /* of the spaces that add up: the host's */
  uint64_t rss_bytes;
  /* Of the host's limit that is nearest; limit 0: there is none. */
  uint64_t limit_bytes, used_of_limit_bytes, headroom_bytes;
  char limit_kind[16]; /* "soft", "rlimit_as", "cgroup" or "" */
  struct oomrec_space_usage spaces[16];
  struct oomrec_device_usage devices[16];
};

/* What is held and what is left, now. 1; 0 where nothing is recorded. Takes a few microseconds. */
__attribute__((weak)) int oomrec_usage(struct oomrec_usage_info* usage);

/* The absolute path of this process' newest bundle. Returns its length without the NUL; 0: there is
 * none, or no room for it in `bytes`. */
__attribute__((weak)) uint32_t oomrec_last_bundle(char* path, uint32_t bytes);

/* The number of this thread's latest refusal, which grows with each; 0: none yet. */
__attribute__((weak)) uint32_t oomrec_last_failure(void);

/* The number of the latest refusal of all threads. */
__attribute__((weak)) uint32_t oomrec_failures(void);

/* The absolute path of the bundle that tells of this thread's latest refusal, or of an earlier one
 * of its kind. Returns its length without the NUL; 0: there is none, or no room for it in `bytes`.
 */
__attribute__((weak)) uint32_t oomrec_failure_bundle(char* path, uint32_t bytes);

/* An exception that says that memory has run out. A NULL text is null in the JSON. Of each text the
 * first 64 KiB are taken, of objects_json 1 MiB. */
struct oomrec_exception_info {
  uint32_t size;
  uint32_t since; /* oomrec_failures() before what raised it was tried */
  const char *type, *module, *message, *traceback;
  const char* context;       /* the innermost label where NULL */
  const char* metadata_json; /* a JSON object: becomes custom_metadata as it is */
  const char* objects_json;  /* becomes objects.json of the bundle; NULL: no such file */
  /* "cuda" or "rocm" where a device is short of memory; counts where no refusal tells it. NULL: the
   * host, or not known. */
  const char* backend;
  /* 1: another thread may have raised it first, such as one of a pool whose result was waited for.
   * Where this thread was refused nothing, the newest refusal of all counts then, unless an
   * exception was told of it or ten seconds have passed since. */
  uint32_t any_thread;
};

/* Tells of an exception. Where this thread was refused memory after `since`, the bundle of that
 * refusal is completed (and written first if it had none): metadata.json gets exception_type,
 * exception_module, exception_message, exception_traceback, context and custom_metadata. Else a
 * bundle with the trigger `exception` is written. `path` gets the bundle's path; NULL where it is
 * not wanted. Returns 1: written; 2: the bundle stands, but without (all of) these texts, because
 * the disk is full or metadata_json is no object; 0: there is no bundle. Takes milliseconds, at
 * most a few seconds. */
__attribute__((weak)) int oomrec_exception(const struct oomrec_exception_info* exception,
                                           char* path, uint32_t bytes);

/* oomrec_dump that puts `metadata_json` into custom_metadata and says where the bundle is. */
__attribute__((weak)) int oomrec_dump_with(const char* reason, const char* metadata_json,
                                           char* path, uint32_t bytes);

/* Waiting for news. A word grows, and those who wait for it wake within milliseconds, when a
 * request is refused, when a bundle has been written, and when memory in use passes one of the
 * percentages asked for: of the host's limit that is nearest, or of a device's memory.
 *
 * Asks for `percent` (1 to 100), or with `on` 0 takes that back. 1: done; 0: there is no room, for
 * 8 percentages are in use. */
__attribute__((weak)) int oomrec_notify_at(uint32_t percent, int on);

/* Returns the word: at once where it is not `seen`, else when it grows, after `timeout_ms`, or when
 * a signal comes. Begin with a call with a timeout of 0. */
__attribute__((weak)) uint32_t oomrec_wait(uint32_t seen, uint32_t timeout_ms);

/* Raises the word: for the program's own threads that wait and have something else to do now. */
__attribute__((weak)) void oomrec_wake(void);

/* A living block. */
struct oomrec_block {
  uint32_t size;
  uint32_t node; /* its stack: for oomrec_stack_text */
  uint64_t address, bytes;
  uint64_t birth_realtime_ns; /* to the second; 0: not known */
  char space[16];
};

/* The block that `address` lies in: 1 found. Any address in a block of 64 KiB or more, the
 * beginning of a smaller one; in sampled mode most of the small ones are not known. */
__attribute__((weak)) int oomrec_block_of(uint64_t address, struct oomrec_block* block);

/* The stack `node` as text, a frame a line, innermost first ("train.py:42 make_batch"): Python
 * frames and exported names. Returns its length without the NUL; as many frames as fit are written.
 */
__attribute__((weak)) uint32_t oomrec_stack_text(uint32_t node, char* text, uint32_t bytes);

/* --- High-water marks -------------------------------------------------------------------------
 *
 * Most that was held since the latest oomrec_watermark_begin(), in bytes above what was held then;
 * there is one mark at a time. `own_thread` 0: of the process, heap and mappings as the soft limit
 * counts; else of the thread that began it: what it allocated less what it freed itself (0 on any
 * other thread). Each thread may have held 64 KiB more for a moment. */
__attribute__((weak)) void oomrec_watermark_begin(void);
__attribute__((weak)) uint64_t oomrec_watermark(int own_thread);

/* --- Loaded later ------------------------------------------------------------------------------
 *
 * A library that a program loads by dlopen comes too late to see its allocations: it interposes
 * nothing and records nothing until oomrec_start(). From then on it records what does not need
 * that: the process' memory, marks, what oomrec_note_device() is told, bundles that are asked for.
 *
 * Begins such a recording, with the options of the environment. 1: begun, or recorded already. */
__attribute__((weak)) int oomrec_start(void);

/* What is not recorded, in words; "" where nothing is missing. */
__attribute__((weak)) const char* oomrec_missing(void);

/* A point of the time line, if one is due (ten a second at most). To be called now and then in such
 * a process, which has no events that could do it. */
__attribute__((weak)) void oomrec_tick(void);

/* What a framework says of its device; taken in such a process only. `kind`: "cuda" or "hip". */
__attribute__((weak)) void oomrec_note_device(const char* kind, int32_t ordinal, const char* name,
                                              uint64_t total_bytes, uint64_t free_bytes,
                                              uint64_t allocated_bytes, uint64_t reserved_bytes);

#ifdef __cplusplus
}
#endif

/* OOMREC_CALL(function, argument...): calls it when a recorder is there. In two ways, because in
 * C99 and C++11 a macro's `...` does not stand for nothing. */
#define OOMREC_CALL(...)                                                                          \
  OOMREC_PICK_(__VA_ARGS__, OOMREC_WITH_, OOMREC_WITH_, OOMREC_WITH_, OOMREC_WITH_, OOMREC_WITH_, \
               OOMREC_WITH_, OOMREC_WITH_, OOMREC_ALONE_, 0)                                      \
  (__VA_ARGS__)
#define OOMREC_PICK_(a, b, c, d, e, f, g, h, call, ...) call
#define OOMREC_WITH_(function, ...) ((function) ? ((void)(function)(__VA_ARGS__), 1) : 0)
#define OOMREC_ALONE_(function) ((function) ? ((void)(function)(), 1) : 0)

#endif
