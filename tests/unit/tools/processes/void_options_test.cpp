// What `oomrec run` says about options that have no effect on a program without the recorder.
#include <doctest/doctest.h>

#include "tools/processes/launch/recorded.h"

using oomrec::Options;
using oomrec::tools::processes::options_without_effect;

TEST_CASE("nothing is said about options that `run` itself applies") {
  Options options;
  options.limit_as = 1 << 30;
  options.max_dumps = 3;
  options.on_oom_exec = "true";
  options.quiet = true;
  CHECK(options_without_effect(options).empty());
}

TEST_CASE("a limit names what bounds such a program") {
  Options options;
  options.limit = std::uint64_t{512} << 20;
  CHECK(options_without_effect(options) ==
        "--limit has no effect on it; to bound its memory, use --cgroup 512M or --limit-as 512M");
  options.limit = (std::uint64_t{1} << 30) + 512;
  CHECK(options_without_effect(options).ends_with("--limit-as 1073742336"));
  options.limit = std::uint64_t{1536} << 20;
  CHECK(options_without_effect(options).ends_with("--limit-as 1536M"));
}

TEST_CASE("each of the others is named") {
  Options options;
  options.limit_gpu = "1G";
  options.fail = "malloc:nth=1";
  options.dump_at_exit = true;
  options.on_oom = {oomrec::OnOom::abort, 0};
  options.set_named(oomrec::OptionId::warn);
  CHECK(options_without_effect(options) ==
        "--fail, --limit-gpu, --warn, --dump-at-exit, --on-oom have no effect on it");
  options.limit_reserve = 0;  // nothing
  options.set_named(oomrec::OptionId::limit_reserve);
  options.warn = 0;  // never
  CHECK(options_without_effect(options).find("--warn") == std::string::npos);
  CHECK(options_without_effect(options).find("--limit-reserve") == std::string::npos);
  options.limit_reserve = 1 << 20;
  CHECK(options_without_effect(options).starts_with("--limit-reserve, --fail, "));
}
