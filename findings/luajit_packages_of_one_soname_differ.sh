#!/bin/bash
# Two packages of LuaJIT with one soname and one version differ in lua_State: it has 96 bytes in one, 112 in the other.
#
# Seen on Debian 12 (x86-64): libluajit-5.1-2 (2.1.0~beta3+git20220320) and libluajit2-5.1-2 (2.1-20230119), OpenResty's branch, which nginx's Lua
# module pulls in, and which then replaces the other for every program, Neovim for one. Both are libluajit-5.1.so.2, and say "LuaJIT 2.1.0-beta3".
# The global state lies directly behind the main thread's lua_State, so a profiler or a debugger that reads LuaJIT's memory by soname or version finds
# it in one of them only. What tells: the branch exports lua_getexdata.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -o APT::Sandbox::User=root download -q libluajit-5.1-2=2.1.0~beta3+git20220320+dfsg-4.1+deb12u1 libluajit2-5.1-2=2.1-20230119-1 > problems 2>&1 ||
  { cat problems; exit 1; }
for package in *.deb; do dpkg -x "$package" "${package%%_*}"; done
cat > state.c <<'C'
#include <dlfcn.h>
#include <stdio.h>
typedef struct lua_State lua_State;
#define CALL(type, name) ((type)dlsym(library, name))
int main(int argc, char** argv) {
  void* library = dlopen(argv[argc - 1], RTLD_NOW);
  if (library == NULL) return puts(dlerror()), 1;
  lua_State* state = CALL(lua_State * (*)(void), "luaL_newstate")();
  CALL(void (*)(lua_State*), "luaL_openlibs")(state);
  CALL(int (*)(lua_State*, const char*), "luaL_loadstring")(state, "return jit.version");
  CALL(int (*)(lua_State*, int, int, int), "lua_pcall")(state, 0, 1, 0);
  const char* version = CALL(const char* (*)(lua_State*, int, void*), "lua_tolstring")(state, -1, NULL);
  const char* global = *(const char**)((char*)state + 16);  /* its global_State, which begins with the allocator */
  printf("%s: global state %td bytes behind the main thread's, lua_getexdata %s\n", version, global - (char*)state,
         dlsym(library, "lua_getexdata") ? "there" : "missing");
  return 0;
}
C
gcc -O1 -w -o state state.c -ldl
for package in libluajit-5.1-2 libluajit2-5.1-2; do ./state "$work/$package/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2"; done | tee seen
diff seen - <<'O'
LuaJIT 2.1.0-beta3: global state 96 bytes behind the main thread's, lua_getexdata missing
LuaJIT 2.1.0-beta3: global state 112 bytes behind the main thread's, lua_getexdata there
O
echo "as described"
