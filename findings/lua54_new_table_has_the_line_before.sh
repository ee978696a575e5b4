#!/bin/bash
# From Lua 5.4 on, while a table is made, the line that its function runs is that of an operation before; in 5.3 it is the table's.
#
# Seen with Lua 5.4.4 and 5.3.6 (Debian 12). The interpreter keeps its position in a register, and writes it down only before operations that may
# fail. Making a table is none of these. So an allocator that asks lua_getinfo() which line runs, and any profiler that reads the position while a
# table is allocated, blames the call before it.
set -eu
work=$(mktemp -d); trap 'rm -rf "$work"' EXIT
cd "$work"
apt-get -o APT::Sandbox::User=root download -q liblua5.3-0=5.3.6-2 liblua5.3-dev=5.3.6-2 liblua5.4-0=5.4.4-3+deb12u1 liblua5.4-dev=5.4.4-3+deb12u1 > problems 2>&1 ||
  { cat problems; exit 1; }
for package in *.deb; do dpkg -x "$package" .; done
cat > lines.c <<'C'
#include <lauxlib.h>
#include <lualib.h>
#include <stdio.h>
#include <stdlib.h>
static lua_State* state;
static int watches, lines[10];
static void* allocate(void* data, void* block, size_t old, size_t size) {
  (void)data;
  lua_Debug call;
  if (size == 0) return free(block), NULL;
  /* Only new tables: no other object is asked for as one. */
  if (watches && block == NULL && old == LUA_TTABLE && lua_getstack(state, 0, &call) && lua_getinfo(state, "l", &call)) ++lines[call.currentline];
  return realloc(block, size);
}
int main(void) {
  state = lua_newstate(allocate, NULL);
  luaL_openlibs(state);
  luaL_loadstring(state, "local function name(i) return i end\nfor i = 1, 1000 do\nlocal first = name(i)\nlocal row = {}\nend\n");
  watches = 1;
  lua_pcall(state, 0, 0, 0);
  watches = 0;
  printf("%s: 1000 tables of line 4:", LUA_RELEASE);
  for (int line = 0; line < 10; ++line)
    if (lines[line] != 0) printf(" %d in line %d", lines[line], line);
  puts("");
  return 0;
}
C
for version in 5.3 5.4; do
  gcc -O1 -w -Iusr/include/lua$version -Iusr/include/x86_64-linux-gnu -o lines$version lines.c "$work"/usr/lib/x86_64-linux-gnu/liblua$version.so.0
  LD_LIBRARY_PATH=$work/usr/lib/x86_64-linux-gnu ./lines$version
done | tee seen
diff seen - <<'O'
Lua 5.3.6: 1000 tables of line 4: 1000 in line 4
Lua 5.4.4: 1000 tables of line 4: 1000 in line 3
O
echo "as described"
