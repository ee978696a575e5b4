// The command of --on-oom-exec, read by a real shell: whatever a directory is named, the command
// gets its name and runs none of it.
#include "common/text/expand.h"

#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

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
