// Options: valid values, and errors about invalid ones.
#include "common/options/options.h"

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <type_traits>

#include "common/session/device_layout.h"

using namespace oomrec;

namespace {

std::uint64_t size_of(std::string_view text) {
  std::uint64_t bytes = 123;
  REQUIRE(parse_size(text, bytes));
  return bytes;
}

bool refused(std::string_view text) {
  std::uint64_t bytes = 123;
  return !parse_size(text, bytes) && bytes == 123;
}

template <class T>
bool same(const T& one, const T& other) {
  if constexpr (std::is_same_v<T, const char*>)
    return std::string_view{one} == other;
  else if constexpr (std::is_same_v<T, OomAction>)
    return one.what == other.what && one.status == other.status;
  else
    return one == other;
}

}  // namespace

TEST_CASE("a size is a number with a suffix in powers of 1024") {
  CHECK(size_of("0") == 0);
  CHECK(size_of("64") == 64);
  CHECK(size_of("512K") == 512 * 1024);
  CHECK(size_of("7m") == 7u << 20);
  CHECK(size_of("1.5G") == 3ull << 29);
  CHECK(size_of("0.25T") == 1ull << 38);
  CHECK(size_of("18446744073709551615") == ~0ull);
  CHECK(size_of("1.000000001G") == (1ull << 30) + 1);
}

TEST_CASE("an invalid size is rejected and leaves the value unchanged") {
  for (const char* text : {"",
                           "K",
                           "-1",
                           "+1",
                           " 1",
                           "1 ",
                           "1KB",
                           "1KiB",
                           "1P",
                           "1e3",
                           "0x10",
                           "1.5",
                           "1.",
                           ".5G",
                           "1..5G",
                           "1.5.5G",
                           "1.0000000001G",
                           "18446744073709551616",
                           "16777216T",
                           "1,5G"}) {
    CAPTURE(text);
    CHECK(refused(text));
  }
}

TEST_CASE("the environment sets the options that it names") {
  const char* const environment[] = {"PATH=/bin",
                                     "OOMREC_LIMIT=1G",
                                     "OOMREC_MODE=exact",
                                     "OOMREC_QUIET=1",
                                     "OOMREC_DUMP_DIR=d/%p",
                                     "OOMREC_MAX_DUMPS=7",
                                     "OOMREC_CHILDREN=no",
                                     "OOMREC_UNKNOWN=1",
                                     "OOMREC_LIMIT_AS=2G",
                                     nullptr};
  OptionProblems problems;
  const Options options = read_options(environment, problems);
  CHECK(problems.empty());
  CHECK(options.limit == 1ull << 30);
  CHECK(options.limit_as == 2ull << 30);
  CHECK(options.mode == Mode::exact);
  CHECK(options.quiet);
  CHECK_FALSE(options.children);
  CHECK(options.dump_dir == std::string{"d/%p"});
  CHECK(options.is_named(OptionId::dump_dir));
  CHECK(options.max_dumps == 7);
}

TEST_CASE("the defaults of rows and struct agree") {
#define X(field, variable, type, scope, traits, fallback, help) #variable "=" fallback,
  const char* const environment[] = {OOMREC_OPTIONS(X) nullptr};
#undef X
  OptionProblems problems;
  const Options rows = read_options(environment, problems), defaults;
  CHECK(problems.empty());
#define X(field, variable, type, scope, traits, fallback, help) \
  CHECK(same(rows.field, defaults.field));
  OOMREC_OPTIONS(X)
#undef X
}

TEST_CASE("an invalid value is reported and keeps its default; the rest is read") {
  const char* const environment[] = {"OOMREC_MAX_DUMPS=many", "OOMREC_LIMIT=1X", "OOMREC_QUIET=1",
                                     nullptr};
  OptionProblems problems;
  const Options options = read_options(environment, problems);
  REQUIRE(problems.end() - problems.begin() == 2);
  const OptionProblem problem = *problems.begin();
  CHECK(problem.variable == std::string{"OOMREC_MAX_DUMPS"});
  CHECK(problem.value == std::string{"many"});
  CHECK(problems.begin()[1].variable == std::string{"OOMREC_LIMIT"});
  CHECK(options.max_dumps == 5);
  CHECK(options.limit == 0);
  CHECK(options.quiet);
  CHECK(accepted_by(problem.variable) == "a whole number");
  CHECK(accepted_by("OOMREC_LIMIT").find("1.5G") != std::string_view::npos);
  CHECK(accepted_by("OOMREC_NONSENSE").empty());
}

TEST_CASE("a device's limit is the size that names it most precisely") {
  using session::Vendor;
  const auto limit = [](std::string_view text, Vendor vendor, int ordinal) {
    return device_limit(text, vendor, ordinal);
  };
  const std::string_view text = "1K,2K@1,3K@cuda:1,4K@hip:0";
  CHECK(limit(text, Vendor::cuda, 0) == 1 << 10);
  CHECK(limit(text, Vendor::cuda, 1) == 3 << 10);
  CHECK(limit(text, Vendor::hip, 0) == 4 << 10);
  CHECK(limit(text, Vendor::hip, 1) == 2 << 10);
  CHECK(limit(text, Vendor::cuda, 2) == 1 << 10);
  CHECK(limit("3K@cuda:1,2K@1", Vendor::cuda, 1) == 3 << 10);
  CHECK(limit("1K@cuda:1", Vendor::hip, 1) == 0);
  CHECK(limit("", Vendor::cuda, 0) == 0);
}

TEST_CASE("sizes of devices, each named once") {
  const auto understood = [](const char* value) {
    const std::string entry = std::string{"OOMREC_LIMIT_GPU="} + value;
    const char* const environment[] = {entry.c_str(), nullptr};
    OptionProblems problems;
    const bool kept = read_options(environment, problems).limit_gpu == std::string{value};
    CHECK(kept == problems.empty());
    return kept;
  };
  for (const char* const value : {"1G", "1.5G@0", "1G@cuda:1,2G@hip:1,3G@1,4G", "1G@hip:0"}) {
    CAPTURE(value);
    CHECK(understood(value));
  }
  for (const char* const value :
       {"1G,2G", "1G@0,2G@0", "1G@cuda:1,2G@0,1G@cuda:1", "1G@cuda:", "1G@cuda", "1G@rocm:0",
        "1G@cuda:x", "1G@:0", "0@0", "1G,", "@hip:0"}) {
    CAPTURE(value);
    CHECK_FALSE(understood(value));
  }
}

TEST_CASE("repeated variables do not overflow the list of problems") {
  const char* environment[100] = {};
  for (std::size_t i = 0; i + 1 < std::size(environment); ++i) environment[i] = "OOMREC_LIMIT=1X";
  OptionProblems problems;
  CHECK(read_options(environment, problems).limit == 0);
  CHECK(problems.end() - problems.begin() < 99);
}

TEST_CASE("an empty value and an empty environment mean the defaults") {
  const char* const environment[] = {"OOMREC_LIMIT=", "OOMREC_DUMP_DIR=", nullptr};
  OptionProblems problems;
  const Options options = read_options(environment, problems);
  CHECK(options.limit == 0);
  CHECK_FALSE(options.is_named(OptionId::dump_dir));
  CHECK(options.dump_dir == std::string{"oom_dumps"});
  CHECK(read_options(nullptr, problems).max_dumps == 5);
  CHECK(problems.empty());
}

TEST_CASE("options that make requests fail are turned off together") {
  const char* const environment[] = {"OOMREC_LIMIT=1G",          "OOMREC_LIMIT_AS=2G",
                                     "OOMREC_FAIL=malloc:nth=1", "OOMREC_LIMIT_GPU=1G",
                                     "OOMREC_WARN=90",           nullptr};
  OptionProblems problems;
  Options options = read_options(environment, problems);
  CHECK(is_chosen(options, OptionId::limit_gpu));
  CHECK(is_chosen(options, OptionId::warn));
  CHECK_FALSE(is_chosen(options, OptionId::on_oom));
  turn_off(options, kRefuses);
  CHECK(options.limit == 0);
  CHECK(options.limit_as == 0);
  CHECK(std::string_view{options.fail}.empty());
  CHECK(std::string_view{options.limit_gpu}.empty());
  CHECK(options.warn == 90);
}
