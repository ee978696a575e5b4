// A described fact, written in the dying process and by the commands.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <string>

#include "common/facts/account.h"
#include "tools/base/json_tree.h"

using namespace oomrec;

namespace {

// As the dying process writes it.
std::string written(const auto& fact) {
  const int fd = memfd_create("fact", MFD_CLOEXEC);
  char buffer[64];
  text::JsonWriter json{OutsideHooks::in_hook(), fd, buffer, sizeof buffer};
  facts::write(json, fact);
  CHECK(json.finish());
  std::string text(static_cast<std::size_t>(lseek(fd, 0, SEEK_END)), '\0');
  CHECK(pread(fd, text.data(), text.size(), 0) == static_cast<ssize_t>(text.size()));
  close(fd);
  return text;
}

// As the commands print it, without a blank.
std::string printed(const auto& fact) { return tools::fact_json(fact).dump(); }

session::CgroupAccount full_cgroup() {
  session::CgroupAccount account{};
  account.source = static_cast<session::u32>(session::AccountSource::kill_line);
  account.limit_bytes = 900;
  account.usage_bytes = 800;
  account.recorded_bytes = 1;
  account.unrecorded_bytes = 2;
  account.shared_bytes = 3;
  account.file_bytes = 4;
  account.slab_bytes = 5;
  account.kernel_bytes = 6;
  account.other_bytes = 7;
  account.own_anonymous_bytes = 8;
  account.own_file_bytes = 9;
  account.own_shared_bytes = 10;
  return account;
}

}  // namespace

TEST_CASE("an account is null, without a largest other, or whole") {
  session::CgroupAccount account = full_cgroup();
  CHECK(written(account) == R"({
  "source": "kill_line",
  "scope": "cgroup",
  "limit_bytes": 900,
  "usage_bytes": 800,
  "recorded_bytes": 1,
  "unrecorded_bytes": 2,
  "shared_bytes": 3,
  "file_bytes": 4,
  "slab_bytes": 5,
  "kernel_bytes": 6,
  "other_bytes": 7,
  "process": {"anonymous_bytes": 8, "file_bytes": 9, "shared_bytes": 10},
  "largest_other": null
}
)");

  account.scope = static_cast<session::u32>(session::AccountScope::machine);
  account.largest_pid = 17;
  account.largest_bytes = 11;
  account.largest_recorded = 1;
  std::fill(std::begin(account.largest_name), std::end(account.largest_name), '\x1b');
  const std::string other =
      R"("largest_other":{"pid":17,"name":"????????????????","rss_bytes":11,"recorded":true}})";
  CHECK(printed(account).ends_with(other));
  CHECK(printed(account).starts_with(R"({"source":"kill_line","scope":"machine","limit_bytes")"));

  account.usage_bytes = 0;
  CHECK(written(account) == "null\n");
  CHECK(printed(account) == "null");
}
