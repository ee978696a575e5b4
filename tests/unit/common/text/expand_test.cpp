// Text of a session: patterns of names, and frames.
#include "common/text/expand.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <initializer_list>
#include <string>

#include "common/text/frames.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;

// --- The command of --on-oom-exec, read by a real shell: whatever a directory is named, the
// command gets its name and runs none of it

namespace oomrec::text {
namespace {

std::string expanded(std::string_view pattern, std::string_view bundle) {
  char out[4096];
  REQUIRE(expand_command(pattern, 42, bundle, out, sizeof out));
  return out;
}

// What the shell prints.
std::string output_of(const std::string& command, const std::string& bundle) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    close(ends[1]);
    setenv(kBundleVariable.data(), bundle.c_str(), 1);
    execl("/bin/sh", "sh", "-c", command.c_str(), "sh", "42", bundle.c_str(), nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::string text;
  char piece[512];
  for (ssize_t bytes; (bytes = read(ends[0], piece, sizeof piece)) > 0;)
    text.append(piece, static_cast<std::size_t>(bytes));
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  return status == 0 ? text : text + " (failed)";
}

constexpr const char* kOddPaths[] = {"/d/a$(echo RAN)b",
                                     "/d/a`echo RAN`b",
                                     "/d/it's",
                                     "/d/say \"so\"",
                                     "/d/two  words",
                                     "/d/line\nfeed\n",
                                     "/d/a;echo RAN",
                                     "/d/a|echo RAN",
                                     "/d/a&echo RAN;",
                                     "/d/$OOMREC_BUNDLE",
                                     "/d/back\\slash\\",
                                     "/d/*",
                                     "/d/~",
                                     "/d/a>b<c",
                                     "/d/'$(echo RAN)",
                                     "/d/\"'`\\$(echo RAN)",
                                     "/d/#hash",
                                     "/d/{a,b}",
                                     "/d/!!",
                                     "/d/%b%p",
                                     "-n $(echo RAN)",
                                     "/d/é",
                                     "/d/$((1+1))",
                                     "/d/${HOME}"};

TEST_CASE("a plain path is inserted as it is, in any quoting") {
  CHECK(expanded("show %b '%b' \"%b\" %p 100%% %x \\%b", "/var/oom_dumps/x-1.2+a,b:c@d") ==
        "show /var/oom_dumps/x-1.2+a,b:c@d '/var/oom_dumps/x-1.2+a,b:c@d' "
        "\"/var/oom_dumps/x-1.2+a,b:c@d\" 42 100% %x \\/var/oom_dumps/x-1.2+a,b:c@d");
  CHECK(expanded("show %b", "") == "show ");
}

TEST_CASE("any other path is a reference, quoted as its position requires") {
  CHECK(expanded("a %b b", "/a b") == "a \"${OOMREC_BUNDLE}\" b");
  CHECK(expanded("a \"x %b\" b", "/a b") == "a \"x ${OOMREC_BUNDLE}\" b");
  CHECK(expanded("a 'x %b' b", "/a b") == "a 'x '\"${OOMREC_BUNDLE}\"'' b");
}

TEST_CASE("the shell sees the path itself in each position, and runs nothing in it") {
  // `printf %%s` is printf's %s.
  struct {
    const char* pattern;
    const char* before;
    const char* after;
  } const positions[] = {
      {"printf %%s %b", "", ""},
      {"printf %%s \"%b\"", "", ""},
      {"printf %%s '%b'", "", ""},
      {"printf %%s x%by", "x", "y"},
      {"printf %%s \"<%b>\"", "<", ">"},
      {"printf %%s '<%b>'", "<", ">"},
      {"printf %%s \"it's %b\"", "it's ", ""},
      {"printf %%s 'a\"b %b'", "a\"b ", ""},
      {"printf %%s it\\'s%b", "it's", ""},
      {"printf %%s \"\\\"%b\\\"\"", "\"", "\""},
      {"printf %%s \\\\%b", "\\", ""},
      {"printf %%s \\%b", "", ""},
      {"x=%b; printf %%s \"$x\"", "", ""},
      {"printf %%s \"$OOMREC_BUNDLE\"", "", ""},
      {"printf %%s \"$2\"", "", ""},
      {"if true; then printf %%s \"$(printf %%s \"%b.\")\"; fi", "", "."},
      {"printf %%s 'a''b'\"c\"%b", "abc", ""},
      {"# it isn't code\nprintf %%s \"$2\" # %b", "", ""},
  };
  for (const char* const path : kOddPaths) {
    for (const auto& position : positions) {
      CAPTURE(position.pattern);
      CAPTURE(path);
      // The word within $( ) is taken for unquoted: blanks and patterns in it are split.
      const bool split = std::string_view{position.pattern}.find("$(") != std::string_view::npos &&
                         std::string_view{path}.find_first_of(" \n*\\") != std::string_view::npos;
      const std::string command = expanded(position.pattern, path);
      const std::string output = output_of(command, path);
      if (!split) CHECK(output == std::string{position.before} + path + position.after);
      CHECK(output.find("RAN\n") == std::string::npos);
      CHECK(command.find("RAN") == std::string::npos);
    }
  }
}

TEST_CASE("a misjudged quoting shows the reference, and runs nothing") {
  for (const char* const pattern :
       {"cat <<END\n'%b\nEND", "cat <<END\n%b\nEND", "cat <<'END'\n%b\nEND", "echo ${x:-%b}",
        "echo \"${x:-\"%b\"}\"", "echo `echo %b`", "echo \"`echo \"%b\"`\"",
        "# don't\necho %b '"}) {
    for (const char* const path : kOddPaths) {
      CAPTURE(pattern);
      const std::string command = expanded(pattern, path);
      CHECK(command.find("RAN") == std::string::npos);
      // As many commands as the path has: none of its text is one.
      CHECK(output_of(command, path).find("\nRAN\n") == std::string::npos);
    }
  }
}

TEST_CASE("a command that does not fit is none") {
  char out[16];
  CHECK_FALSE(expand_command("echo %b", 1, "/a/long/path/name", out, sizeof out));
  CHECK_FALSE(expand_command("echo %b", 1, "/a b", out, sizeof out));
}

}  // namespace
}  // namespace oomrec::text

// --- Who requested the memory, by the modules on its stack

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
