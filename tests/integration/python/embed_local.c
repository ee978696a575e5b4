// A program that loads an interpreter into a local scope: no global name leads to it.
//   embed_local LIBPYTHON FRAMES_PROBE SESSION_DIRECTORY
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>

static int (*frames)(char*, unsigned);
static void* (*number)(long);

static void* here(void* self, void* arguments) {
  (void)self, (void)arguments;
  static char text[4096];
  const int count = frames(text, sizeof text);
  printf("%d\n%s", count, text);
  return number(count);
}

// PyMethodDef, the same in every version.
static struct {
  const char* name;
  void* (*function)(void*, void*);
  int flags;
  const char* documentation;
} method = {"here", here, 4 /* METH_NOARGS */, 0};

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  void* probe = dlopen(argv[2], RTLD_NOW | RTLD_LOCAL);
  void* python = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
  if (!probe || !python) return fprintf(stderr, "%s\n", dlerror()), 2;
  int (*start)(const char*) = (int (*)(const char*))dlsym(probe, "probe_start");
  int (*module_seen)(uint64_t) = (int (*)(uint64_t))dlsym(probe, "probe_module");
  void (*initialize)(void) = (void (*)(void))dlsym(python, "Py_Initialize");
  int (*finalize)(void) = (int (*)(void))dlsym(python, "Py_FinalizeEx");
  int (*run)(const char*, void*) =
      (int (*)(const char*, void*))dlsym(python, "PyRun_SimpleStringFlags");
  void* (*module)(const char*) = (void* (*)(const char*))dlsym(python, "PyImport_AddModule");
  int (*set)(void*, const char*, void*) =
      (int (*)(void*, const char*, void*))dlsym(python, "PyObject_SetAttrString");
  void* (*function)(void*, void*, void*) =
      (void* (*)(void*, void*, void*))dlsym(python, "PyCFunction_NewEx");
  frames = (int (*)(char*, unsigned))dlsym(probe, "probe_frames");
  number = (void* (*)(long))dlsym(python, "PyLong_FromLong");
  Dl_info library;
  if (!dladdr((void*)initialize, &library)) return 2;
  printf("started %d\n", start(argv[3]));
  printf("seen %d\n", module_seen((uint64_t)library.dli_fbase));
  static char text[64];
  printf("before %d\n", frames(text, sizeof text));
  for (int round = 0; round < 2; ++round) {
    initialize();
    set(module("__main__"), "here", function(&method, 0, 0));
    if (run("def inner():\n    here()\ndef outer():\n\n    inner()\nouter()\n", 0) != 0) return 2;
    finalize();
    printf("after %d\n", frames(text, sizeof text));
  }
  return 0;
}
