// The script that an interpreter runs, by its command line.
#include "tools/recording/reading/script.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace oomrec::tools;

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
