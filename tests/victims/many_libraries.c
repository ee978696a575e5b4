// Loads ever new libraries, one after the other: copies of one, each with a path and a build-id of
// its own.
//
// many_libraries LIBRARY DIRECTORY COUNT: each allocates 100,003 bytes, which it frees, except
// every 500th. At the end "the_last.so" leaks 40 MiB, and the program is killed.
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kKept = 500, kBytes = 100003 };

static char* g_image;
static long g_bytes;
static char* g_build_id;  // in it

static void read_image(const char* path) {
  FILE* const file = fopen(path, "rb");
  if (file == NULL) exit(2);
  fseek(file, 0, SEEK_END);
  g_bytes = ftell(file);
  rewind(file);
  g_image = malloc(g_bytes);
  if (fread(g_image, 1, g_bytes, file) != (size_t)g_bytes) exit(2);
  fclose(file);
  const char note[] = "\x14\0\0\0\3\0\0\0GNU";  // a build-id of 20 bytes
  g_build_id = memmem(g_image, g_bytes, note, sizeof note);
  if (g_build_id == NULL) exit(2);
  g_build_id += sizeof note;
}

static void* load(const char* path, unsigned number) {
  memcpy(g_build_id, &number, sizeof number);
  FILE* const file = fopen(path, "wb");
  if (file == NULL || fwrite(g_image, 1, g_bytes, file) != (size_t)g_bytes) exit(3);
  fclose(file);
  void* const library = dlopen(path, RTLD_NOW);
  if (library == NULL) exit(4);
  return library;
}

static void* allocate_in(void* library, size_t bytes) {
  void* (*const allocate)(size_t) = (void* (*)(size_t))dlsym(library, "plugin_allocate");
  return allocate(bytes);
}

int main(int count, char** words) {
  if (count != 4) return 1;
  read_image(words[1]);
  char path[4096];
  const unsigned libraries = atoi(words[3]);
  for (unsigned i = 0; i < libraries; ++i) {
    const int is_kept = i % kKept == 0;
    snprintf(path, sizeof path, "%s/%s_%05u.so", words[2], is_kept ? "kept" : "passing", i);
    void* const library = load(path, i + 1);
    char* const block = allocate_in(library, kBytes);
    block[0] = 1;
    if (!is_kept) free(block);
    dlclose(library);
    if (!is_kept) unlink(path);
  }
  snprintf(path, sizeof path, "%s/the_last.so", words[2]);
  void* const library = load(path, libraries + 1);
  for (int i = 0; i < 40; ++i) *(char*)allocate_in(library, 1 << 20) = 1;
  kill(getpid(), SIGKILL);
  return 0;
}
