/* Looks up functions of a GPU's driver in one way: gpu_lookups cuda|hip WAY. Prints the library of
 * each. With a recorder only the libraries' names may differ. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "marks.h"

typedef int (*Allocate)(void** block, size_t bytes);

static const struct Driver {
  const char* name;
  const char* library;
  const char* allocate;
  const char* release;
  const char* version; /* of `allocate`, if the library has symbol versions */
  const char* resolver;
} kDrivers[] = {
    {"cuda", "libcuda.so.1", "cuMemAlloc_v2", "cuMemFree_v2", "none", "cuGetProcAddress_v2"},
    {"hip", "libamdhip64.so", "hipMalloc", "hipFree", "hip_4.2", "hipGetProcAddress"},
};
static const struct Driver* driver;

static void print_found(const char* way, void* found) {
  const char* const error = dlerror();
  Dl_info info;
  if (found == NULL)
    printf("%s: nothing, and dlerror %s it\n", way,
           error != NULL && strstr(error, "undefined symbol") != NULL ? "says" : "hides");
  else
    printf("%s: in %s%s\n", way, dladdr(found, &info) != 0 ? strrchr(info.dli_fname, '/') + 1 : "?",
           error != NULL ? ", and dlerror complains" : "");
}

static void* open_driver(int mode) {
  void* const library = dlopen(driver->library, RTLD_NOW | mode);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return library;
}

static void* symbol(void* library, const char* name) {
  void* const found = dlsym(library, name);
  if (found == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(2);
  }
  return found;
}

/* Allocates two blocks by a function that was looked up. */
static void allocate_by(void* function, void* library) {
  if (driver == kDrivers) {
    void* context;
    ((int (*)(unsigned))symbol(library, "cuInit"))(0);
    ((int (*)(void**, int))symbol(library, "cuDevicePrimaryCtxRetain"))(&context, 0);
    ((int (*)(void*))symbol(library, "cuCtxSetCurrent"))(context);
  }
  void* block = NULL;
  for (int i = 0; i < 2; i++) printf("result %d\n", ((Allocate)function)(&block, 1 << 20));
}

static void look_in_whole_program(void) {
  void* const program = dlopen(NULL, RTLD_NOW);
  for (int i = 0; i < 2; i++) {
    print_found("RTLD_DEFAULT", dlsym(RTLD_DEFAULT, driver->allocate));
    print_found("RTLD_NEXT", dlsym(RTLD_NEXT, driver->allocate));
    print_found("program", dlsym(program, driver->allocate));
    print_found("unknown name",
                dlsym(RTLD_DEFAULT, driver == kDrivers ? "cuNoSuchName" : "hipNoSuchName"));
    print_found("dlvsym, RTLD_NEXT", dlvsym(RTLD_NEXT, driver->allocate, driver->version));
    print_found("dlvsym, RTLD_DEFAULT", dlvsym(RTLD_DEFAULT, driver->allocate, driver->version));
  }
}

static void look_in_library(void* library) {
  print_found("library", dlsym(library, driver->allocate));
  print_found("library, unknown name", dlsym(library, "cuNoSuchName"));
  print_found("dlvsym", dlvsym(library, driver->allocate, driver->version));
}

static void by_mode(int mode) {
  void* const library = open_driver(mode);
  look_in_whole_program();
  look_in_library(library);
  allocate_by(dlsym(library, driver->allocate), library);
}

static void not_loaded(void) { look_in_whole_program(); }
static void local(void) { by_mode(RTLD_LOCAL); }
static void global(void) { by_mode(RTLD_GLOBAL); }
static void deepbind(void) { by_mode(RTLD_DEEPBIND); }

static void other_namespace(void) {
  void* const library = dlmopen(LM_ID_NEWLM, driver->library, RTLD_NOW);
  if (library == NULL) exit(2);
  look_in_library(library);
}

/* Closes the driver, and loads it again at another address. */
static void reopened(void) {
  void* places[2];
  for (int i = 0; i < 2; i++) {
    void* const library = open_driver(RTLD_LOCAL);
    Dl_info info;
    dladdr(symbol(library, driver == kDrivers ? "cuInit" : "hipInit"), &info);
    places[i] = info.dli_fbase;
    look_in_library(library);
    allocate_by(dlsym(library, driver->allocate), library);
    dlclose(library);
    print_found("closed", dlsym(RTLD_DEFAULT, driver->allocate));
    mmap(places[i], 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  }
  printf("moved: %d\n", places[0] != places[1]);
}

/* A driver's library under an unknown name. */
static void renamed(void) {
  void* const library = dlopen(getenv("LIBRARY"), RTLD_NOW);
  if (library == NULL) exit(2);
  look_in_library(library);
  allocate_by(dlsym(library, driver->allocate), library);
}

/* A library opened with RTLD_LOCAL that depends on the driver. */
static void look_by_plugin(int mode) {
  typedef void* (*Look)(const char*);
  void* const plugin = dlopen(getenv("LIBRARY"), RTLD_NOW | RTLD_LOCAL | mode);
  if (plugin == NULL) exit(2);
  print_found("plugin, RTLD_DEFAULT", ((Look)symbol(plugin, "look_by_default"))(driver->allocate));
  print_found("plugin, its handle", dlsym(plugin, driver->allocate));
  print_found("RTLD_DEFAULT", dlsym(RTLD_DEFAULT, driver->allocate));
}
static void by_plugin(void) { look_by_plugin(0); }
static void by_deep_plugin(void) { look_by_plugin(RTLD_DEEPBIND); }

enum { kThreads = 16, kRounds = 200 };
static void* found_by_threads[kThreads][2];
static pthread_barrier_t together;

static void* look_often(void* library) {
  static int next;
  void** const mine = found_by_threads[__atomic_fetch_add(&next, 1, __ATOMIC_RELAXED)];
  pthread_barrier_wait(&together);
  for (int i = 0; i < kRounds; i++) {
    void* const allocate = dlsym(library, driver->allocate);
    void* const release = dlsym(library, driver->release);
    if (i > 0 && (allocate != mine[0] || release != mine[1])) exit(3);
    mine[0] = allocate;
    mine[1] = release;
  }
  return NULL;
}

static void threads(void) {
  pthread_t all[kThreads];
  void* const library = open_driver(RTLD_LOCAL);
  pthread_barrier_init(&together, NULL, kThreads);
  for (int i = 0; i < kThreads; i++)
    if (pthread_create(&all[i], NULL, look_often, library) != 0) exit(2);
  for (int i = 0; i < kThreads; i++) pthread_join(all[i], NULL);
  for (int i = 1; i < kThreads; i++)
    if (memcmp(found_by_threads[i], found_by_threads[0], sizeof found_by_threads[0]) != 0) exit(3);
  look_in_library(library);
}

static void* opened;
static void on_signal(int number) {
  (void)number;
  look_in_library(opened);
}

static void in_signal(void) {
  opened = open_driver(RTLD_LOCAL);
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
}

typedef int (*Resolve)(const char*, void**, int, unsigned long long);
typedef int (*ResolveWithStatus)(const char*, void**, int, unsigned long long, int*);

static void print_answer(const char* name, int version, unsigned long long flags, int result,
                         void* found, int status) {
  printf("%s %d %llu: %d, status %d, ", name, version, flags, result, status);
  print_found("found", found);
}

/* The driver's resolver looks itself up, in both forms, and then resolves other names. */
static void resolver(void) {
  static const struct {
    const char* name;
    int version;
  } kCuda[] = {{"cuMemAlloc", 3020},    {"cuMemAlloc", 2000},        {"cuMemAlloc", 1000},
               {"cuMemAlloc_v2", 3020}, {"cuNoSuchName", 13000},     {"cuMemAllocAsync", 11020},
               {"cuInit", 2000},        {"cuGetProcAddress", 11030}, {"cuGetProcAddress", 12000}},
    kHip[] = {{"hipMalloc", 60100},
              {"hipNoSuchName", 60100},
              {"hipMallocAsync", 60100},
              {"hipGetProcAddress", 60100}};
  const int is_cuda = driver == kDrivers;
  void* const library = open_driver(RTLD_LOCAL);
  void* first = symbol(library, driver->resolver);
  print_found("resolver", first);
  if (is_cuda) {
    void* older = NULL;
    int status = -1;
    const int result = ((ResolveWithStatus)first)("cuGetProcAddress", &older, 11030, 0, &status);
    print_answer("cuGetProcAddress", 11030, 0, result, older, status);
    void* found = NULL;
    const int older_result = ((Resolve)older)("cuMemAlloc", &found, 3020, 0);
    print_answer("cuMemAlloc by the older form", 3020, 0, older_result, found, -1);
    found = NULL;
    ((ResolveWithStatus)first)("cuGetProcAddress", &first, 12000, 0, NULL);
  }
  void* allocate = NULL;
  const size_t count = is_cuda ? sizeof kCuda / sizeof *kCuda : sizeof kHip / sizeof *kHip;
  for (size_t i = 0; i < count; i++) {
    const char* const name = is_cuda ? kCuda[i].name : kHip[i].name;
    const int version = is_cuda ? kCuda[i].version : kHip[i].version;
    for (unsigned long long flags = 0; flags <= 2; flags += 2) {
      void* found = NULL;
      int status = -1;
      const int result = ((ResolveWithStatus)first)(name, &found, version, flags, &status);
      print_answer(name, version, flags, result, found, status);
      found = NULL;
      printf("without a status: %d, ",
             ((ResolveWithStatus)first)(name, &found, version, flags, NULL));
      print_found("found", found);
      if (i == 0) allocate = found;
    }
  }
  allocate_by(allocate, library);
}

/* Names with a driver's prefix that belong to this program, and must be found there. */
/* clang-format off */
#define OTHERS(X) \
  X(curl_easy_init) X(cudnnCreate) X(cublasCreate_v2) X(cudaMalloc) X(cufftPlan1d) X(cuda_x) X(cu) X(hip) \
  X(hipblasCreate) X(hiprtcCreateProgram) X(hip_x) X(cuNotInAnyTable) X(hipNotInAny)
/* clang-format on */
#define X(name) \
  __attribute__((visibility("default"))) int name(void) { return 1; }
OTHERS(X)
#undef X

static void other_names(void) {
  void* const program = dlopen(NULL, RTLD_NOW);
#define X(name)                                                     \
  printf("%s %d %d\n", #name, dlsym(program, #name) == (void*)name, \
         dlsym(RTLD_DEFAULT, #name) == (void*)name);
  OTHERS(X)
#undef X
}

/* clang-format off */
#define WAYS(X) \
  X(not_loaded) X(local) X(global) X(deepbind) X(other_namespace) X(reopened) X(renamed) X(by_plugin) \
  X(by_deep_plugin) X(threads) X(in_signal) X(resolver) X(other_names)
/* clang-format on */

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  driver = &kDrivers[strcmp(argv[1], "hip") == 0];
#define X(name) \
  if (strcmp(argv[2], #name) == 0) name();
  WAYS(X)
#undef X
  mark("looked up");
  return 0;
}
