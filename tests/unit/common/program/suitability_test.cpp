// Installed programs (the loader, ls, shell scripts), and files made by the test.
#include <doctest/doctest.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "common/machine/platform.h"
#include "common/program/preload_list.h"
#include "common/program/suitability.h"
#include "tests/unit/scratch_directory.h"

namespace fs = std::filesystem;
using namespace oomrec::program;

namespace {

// A temporary directory with programs in it.
class Programs {
  const oomrec::tests::ScratchDirectory scratch_;

 public:
  std::string write(const std::string& name, const std::string& text, unsigned mode = 0755) const {
    const fs::path path = directory / name;
    std::ofstream{path, std::ios::binary} << text;
    ::chmod(path.c_str(), mode);
    return path;
  }

  const fs::path directory = scratch_.path();
};

std::string content(const char* path) {
  std::ifstream file{path, std::ios::binary};
  return {std::istreambuf_iterator<char>{file}, {}};
}

#ifdef __x86_64__
constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";
#else
constexpr const char* kLoader = "/lib/ld-linux-aarch64.so.1";
#endif

std::string without(std::string_view list) {
  std::vector<char> out(list.size() + 1);
  return {out.data(), copy_without_preload(list, "liboomrec.so", out.data())};
}

}  // namespace

TEST_CASE("an ordinary program can be recorded, also through its loader and scripts") {
  const Programs programs;
  const std::string script = programs.write("script", "#!/bin/sh\n");
  CHECK(inspect("/bin/ls").suitability == Suitability::suitable);
  CHECK(inspect(kLoader).suitability == Suitability::suitable);
  CHECK(inspect(script.c_str()).suitability == Suitability::suitable);
  CHECK(inspect(script.c_str()).error == 0);
}

TEST_CASE("a program for another machine cannot be recorded") {
  const Programs programs;
  std::string elf = content("/bin/true");
  SUBCASE("word size") { elf[4] = 1; }
  SUBCASE("processor") { elf[18] = 3; }
  CHECK(inspect(programs.write("p", elf).c_str()).suitability == Suitability::other_machine);
}

TEST_CASE("the loader determines the C library") {
  const Programs programs;
  std::string elf = content("/bin/true");
  const std::string_view glibc = kLoader;
  std::string musl = "/lib/ld-musl-" OOMREC_MACHINE ".so.1";
  musl.resize(glibc.size());
  elf.replace(elf.find(glibc), glibc.size(), musl);
  const std::string program = programs.write("p", elf);
  CHECK(inspect(program.c_str()).suitability == Suitability::other_libc);
  const std::string script = programs.write("script", "#! \t" + program + " -x\n");
  CHECK(inspect(script.c_str()).suitability == Suitability::other_libc);
  CHECK(inspect(programs.write("s2", "#!" + script).c_str()).suitability ==
        Suitability::other_libc);
}

TEST_CASE("a script that calls itself is not followed forever") {
  const Programs programs;
  const std::string script = programs.directory / "loop";
  programs.write("loop", "#!" + script + "\n");
  CHECK(inspect(script.c_str()).suitability == Suitability::suitable);
}

TEST_CASE("another user's setuid program cannot be recorded, one's own can") {
  const Programs programs;
  const std::string program = programs.write("p", content("/bin/true"), 04755);
  CHECK(inspect(program.c_str()).suitability == Suitability::suitable);
  if (::geteuid() == 0 && ::chown(program.c_str(), 1234, 0) == 0) {
    ::chmod(program.c_str(), 04755);
    CHECK(inspect(program.c_str()).suitability == Suitability::privileged);
  }
}

TEST_CASE("a search finds what execvp would find") {
  const Programs programs;
  programs.write("tool", "#!/bin/sh\n");
  programs.write("data", "text", 0644);
  const std::string path = "/nonexistent:" + programs.directory.string();
  CHECK(inspect_in_path("tool", path.c_str()).error == 0);
  CHECK(inspect_in_path("data", path.c_str()).error == EACCES);
  CHECK(inspect_in_path("missing", path.c_str()).error == ENOENT);
  CHECK(inspect_in_path("", path.c_str()).error == ENOENT);
  CHECK(inspect_in_path("/bin/ls", "").error == 0);
  CHECK(inspect_in_path("ls", nullptr).error == 0);
}

TEST_CASE("a descriptor is inspected without a path") {
  const int descriptor = ::open("/bin/ls", O_PATH | O_CLOEXEC);
  CHECK(inspect_at(descriptor, "", AT_EMPTY_PATH).suitability == Suitability::suitable);
  ::close(descriptor);
}

TEST_CASE("a file cut at any length is inspected without harm") {
  const Programs programs;
  const std::string elf = content("/bin/true");
  unsigned rounds = 0;
  for (std::size_t bytes = 0; bytes < 0x400; ++bytes, ++rounds) {
    const Suitability found =
        inspect(programs.write("p", elf.substr(0, bytes)).c_str()).suitability;
    CHECK((found == Suitability::suitable || found == Suitability::static_linked ||
           found == Suitability::other_libc));
  }
  CHECK(rounds == 0x400);
}

TEST_CASE("only our entry is removed from the preload list") {
  CHECK(without("/x/liboomrec.so") == "");
  CHECK(without("/x/liboomrec.so:/y/a.so") == "/y/a.so");
  CHECK(without("/y/a.so:/x/liboomrec.so") == "/y/a.so");
  CHECK(without("a.so liboomrec.so b.so") == "a.so b.so");
  CHECK(without("libother_liboomrec.so") == "libother_liboomrec.so");
  CHECK(without("") == "");
  CHECK(find_preload("a.so:/x/liboomrec.so", "liboomrec.so") == "/x/liboomrec.so");
  CHECK(find_preload("a.so", "liboomrec.so").empty());
}
