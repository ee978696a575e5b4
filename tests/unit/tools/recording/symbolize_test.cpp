// Names of addresses, and of scripts.
#include <doctest/doctest.h>
#include <link.h>

#include <array>
#include <string>
#include <vector>

#include "tests/unit/tools/recording_image.h"
#include "tools/recording/reading/script.h"
#include "tools/recording/symbolize/locations.h"
#include "tools/recording/symbolize/module_symbols.h"

using namespace oomrec::tools;
using namespace oomrec;
using oomrec::tests::RecordingImage;

// --- Symbolizes addresses of this program, including inlined functions

namespace shapes {

std::uint64_t g_return_address;
unsigned g_line;

__attribute__((noinline)) void allocate() {
  g_return_address = reinterpret_cast<std::uint64_t>(__builtin_return_address(0));
  asm volatile("" ::: "memory");
}

__attribute__((always_inline)) inline void inner() {
  g_line = __LINE__ + 1;
  allocate();
  asm volatile("" ::: "memory");
}

__attribute__((noinline)) void outer() {
  inner();
  asm volatile("" ::: "memory");
}

}  // namespace shapes

namespace {

std::uint64_t own_bias() {
  std::uint64_t bias = 0;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* out) {
        *static_cast<std::uint64_t*>(out) = info->dlpi_addr;
        return 1;  // the first module is the program
      },
      &bias);
  return bias;
}

std::string own_path() { return std::filesystem::read_symlink("/proc/self/exe").string(); }

}  // namespace

TEST_CASE("an address inside an inlined call yields both functions, innermost first") {
  shapes::outer();
  const auto symbols = recording::ModuleSymbols::open(own_path(), {});
  REQUIRE(symbols != nullptr);

  const auto locations = symbols->find(shapes::g_return_address - 1 - own_bias());

  REQUIRE(locations.size() == 2);
  CHECK(locations[0].function == "shapes::inner()");
  CHECK(locations[0].inlined);
  CHECK(locations[0].line == shapes::g_line);
  CHECK(locations[0].file.ends_with("symbolize_test.cpp"));
  CHECK(locations[1].function == "shapes::outer()");
  CHECK_FALSE(locations[1].inlined);
  CHECK(locations[1].line > shapes::g_line);
}

TEST_CASE("a return address is symbolized as the call before it, an exact one as itself") {
  shapes::outer();
  RecordingImage image;
  const std::uint64_t bias = own_bias();
  const std::uint32_t module = image.module(own_path(), bias);
  const std::uint64_t offset = shapes::g_return_address - bias;
  const std::uint64_t entry = reinterpret_cast<std::uint64_t>(&shapes::outer) - bias;
  const std::uint32_t node =
      image.stack({session::native_frame(module, entry, {.exact = true}),
                   session::native_frame(module, offset, {.guessed = true})});
  const recording::Recording recording{image.path()};
  recording::Locations locations{recording, {}};

  const std::vector<recording::LocationId> stack = locations.of_stack(node);

  REQUIRE(stack.size() >= 3);
  CHECK(locations[stack[0]].function == "shapes::inner()");
  CHECK(locations[stack[0]].line == shapes::g_line);
  CHECK(locations[stack[0]].guessed);
  CHECK(locations[stack[1]].function == "shapes::outer()");
  CHECK(locations[stack.back()].function == "shapes::outer()");
}

TEST_CASE("a file of another build symbolizes nothing") {
  const std::array<std::uint8_t, 20> other{1, 2, 3};
  CHECK(recording::ModuleSymbols::open(own_path(), other) == nullptr);
  CHECK(recording::ModuleSymbols::open("/nowhere", {}) == nullptr);
  CHECK(recording::ModuleSymbols::open("/dev/null", {}) == nullptr);
  CHECK(recording::ModuleSymbols::open("/etc/passwd", {}) == nullptr);
}

TEST_CASE("without a file, a frame is shown as module and offset") {
  RecordingImage image;
  const std::uint32_t module = image.module("/gone/libfoo.so", 0x1000);
  const std::uint32_t node = image.stack({session::native_frame(module, 0x1234)});
  const recording::Recording recording{image.path()};
  recording::Locations locations{recording, {}};

  const recording::Location& location = locations[locations.of_stack(node).at(0)];

  CHECK(location.function.empty());
  CHECK(location.offset == 0x1234);
  CHECK(locations.module_path(location) == "/gone/libfoo.so");
  CHECK(locations.unreadable_modules() == std::vector<std::string>{"/gone/libfoo.so"});
}

// --- The script that an interpreter runs, by its command line

namespace {

std::string script(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), "/usr/bin/" + program);
  return recording::script_in(program, arguments);
}

}  // namespace

TEST_CASE("the first word that is no option, nor an option's value, is the script") {
  CHECK(script("python3.11", {"/srv/job/train.py", "--lr", "3"}) == "train.py");
  CHECK(script("python3.13t", {"-u", "-X", "dev", "-W", "error", "train.py"}) == "train.py");
  CHECK(script("python3", {"-Im", "torch.distributed.run", "train.py"}) == "torch.distributed.run");
  CHECK(script("node", {"--max-old-space-size=64", "-r", "./hook.js", "app/serve.js"}) ==
        "serve.js");
  CHECK(script("java", {"-Xmx1g", "-cp", "lib/*", "com.example.Main", "x"}) == "com.example.Main");
  CHECK(script("java", {"-Xmx1g", "-jar", "target/app.jar"}) == "app.jar");
  CHECK(script("bash", {"-eu", "-o", "pipefail", "./nightly.sh"}) == "nightly.sh");
  CHECK(script("php8.2", {"-S", "[::1]:8000", "-t", "web", "web/router.php"}) == "router.php");
  CHECK(script("php8.2", {"-S", "127.0.0.1:8000", "-t", "web"}).empty());
}

TEST_CASE("code in the command line is no script, and neither is stdin") {
  CHECK(script("python3", {"-c", "print(1)", "train.py"}).empty());
  CHECK(script("python3", {"-uc", "print(1)"}).empty());
  CHECK(script("python3", {"-", "train.py"}).empty());
  CHECK(script("node", {"--eval", "f()", "a.js"}).empty());
  CHECK(script("bash", {"-lc", "make"}).empty());
  CHECK(script("perl", {"-ne", "print", "rows.txt"}).empty());
  CHECK(script("python3", {}).empty());
}

TEST_CASE("other programs have none, whatever their arguments") {
  CHECK(script("server", {"train.py"}).empty());
  CHECK(script("shutdown", {"now"}).empty());
  CHECK(recording::script_in("", {}).empty());
  CHECK(recording::script_in("python3", {}).empty());
}
