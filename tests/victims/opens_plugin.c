/* Opens a plugin in one of several ways, lets it allocate, closes it and opens it again.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void* plugin;

static void* symbol(const char* name) {
  void* const found = dlsym(plugin, name);
  if (found == NULL) exit((puts(dlerror()), 3));
  return found;
}

static void* call(const char* name, size_t bytes) {
  void* const block = ((void* (*)(size_t))symbol(name))(bytes);
  if (block == NULL) exit((perror(name), 4));
  return block;
}

static void open_plugin(const char* way, const char* path) {
  const int now = getenv("BIND_NOW") ? RTLD_NOW : RTLD_LAZY;
  errno = 77;
  if (strcmp(way, "namespace") == 0)
    plugin = dlmopen(LM_ID_NEWLM, path, now);
  else
    plugin = dlopen(path, now | (strcmp(way, "deep") == 0 ? RTLD_DEEPBIND : 0));
  if (plugin == NULL) exit((puts(dlerror()), 2));
}

int main(int argc, char** argv) {
  if (argc < 3) return 1;
  void* const nothing = dlopen("/nowhere.so", RTLD_LAZY | RTLD_DEEPBIND);
  printf("nothing: %p, %s\n", nothing, dlerror());
  memset(malloc(20000023), 1, 20000023); /* so that it is large enough for a bundle at its end */
  open_plugin(argv[1], argv[2]);
  printf("errno %d, %s\n", errno, dlerror() ? "an error" : "no error");
  void* const released = call("plugin_allocate", 3000017);
  ((void (*)(void*))symbol("plugin_release"))(released);
  call("plugin_allocate", 5000011);
  call("plugin_allocate_by_address", 4000037);
  call("plugin_map", 2 << 20);
  void** const of_constructor = symbol("of_constructor");
  *of_constructor = ((void* (*)(void*, size_t))symbol("plugin_resize"))(*of_constructor, 2000003);
  ((void (*)(void*))symbol("plugin_release"))(*of_constructor);
  errno = 0;
  void* const none = ((void* (*)(void))symbol("plugin_too_much"))();
  printf("too much: %s, %s\n", none ? "served" : "refused", strerror(errno));
  dlclose(plugin);
  open_plugin(argv[1], argv[2]);
  call("plugin_allocate", 7000003);
  while (getenv("GROWS")) call("plugin_allocate", 1000003);
  size_t (*const bump_bytes)(void) = dlsym(plugin, "bump_bytes");
  printf("its own allocator: %zu\n", bump_bytes ? bump_bytes() : 0);
  if (argc > 3) { /* stays, to be looked at */
    puts("ready");
    fflush(stdout);
    pause();
  }
  return 0;
}
