// The functions of libdl that we call; only their names count (meson.build).
#define X(name)    \
  void name(void); \
  void name(void) {}
// clang-format off
X(dladdr) X(dladdr1) X(dlclose) X(dlerror) X(dlopen) X(dlsym) X(dlvsym)
