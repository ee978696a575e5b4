// Who requested the memory, by the modules on its stack.
#include <doctest/doctest.h>

#include <initializer_list>
#include <string>

#include "common/text/frames.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;

namespace {

// The requester of a stack in these modules, the innermost first, of a program.
std::string requester(const char* program, std::initializer_list<const char*> modules) {
  session::SessionImage session;
  session.header().executable = session.string(program);
  std::uint32_t node = session.stack({});
  for (auto at = modules.end(); at != modules.begin();)
    node = session.node(node, session::native_frame(session.module(*--at), 0x100));
  char buffer[80];
  return std::string{text::requester_of(session.view(), node, buffer)};
}

}  // namespace

TEST_CASE("a library's request is its program's, and both are named") {
  CHECK(requester("/usr/bin/java", {"/lib/libc.so.6", "/opt/jdk/lib/server/libjvm.so"}) ==
        "java (libjvm)");
  CHECK(requester("/usr/bin/ruby3.1", {"/usr/lib/libruby-3.1.so.3.1.2", "/usr/bin/ruby3.1"}) ==
        "ruby3.1 (libruby-3.1)");
  CHECK(requester("/usr/bin/python3.11", {"/srv/job/sound.cpython-311-x86_64-linux-gnu.so"}) ==
        "python (sound)");
  CHECK(requester("/usr/bin/python3.11", {"/srv/job/sound.abi3.so"}) == "python (sound)");
}

TEST_CASE("a Python package and the interpreter need no other name") {
  CHECK(requester("/usr/bin/python3.11",
                  {"/lib/libc.so.6", "/opt/lib/python3.11/site-packages/numpy/core/_umath.so"}) ==
        "numpy");
  CHECK(requester("/usr/bin/python3.11", {"/usr/lib/libpython3.11.so.1.0"}) == "python");
  CHECK(requester("/usr/bin/gdb", {"/usr/lib/libpython3.11.so.1.0"}) == "python");
}

TEST_CASE("the program itself") {
  CHECK(requester("/srv/job/train.bin", {"/lib/libc.so.6", "/srv/job/train.bin"}) == "train.bin");
  CHECK(requester("/srv/job/train.bin", {"/lib/libc.so.6"}) == "train.bin");
  CHECK(requester("", {"/usr/lib/libsound.so.2"}) == "libsound");
  CHECK(requester("", {}) == "the program");
}
