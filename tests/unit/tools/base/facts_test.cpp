// A described fact, written in the dying process and by the commands, and read back.
#include <doctest/doctest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "common/facts/account.h"
#include "common/facts/end.h"
#include "common/facts/request.h"
#include "common/facts/verdict.h"
#include "tools/base/fact_reader.h"
#include "tools/base/json.h"
#include "tools/bundles/store/stored_facts.h"

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

// What a command reads in the file of the dying process.
template <class Fact>
Fact read_back(const Fact& fact) {
  const std::string section = '"' + std::string{facts::Section<Fact>::key} + '"';
  return tools::fact_in<Fact>(tools::parse_json("{" + section + ": " + written(fact) + "}"))
      .value();
}

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

TEST_CASE("a limit has bytes unless it is on a number") {
  facts::Limit limit{LimitKind::cgroup, 900, 800};
  CHECK(written(limit) == "{\"kind\": \"cgroup\", \"bytes\": 900, \"used\": 800}\n");
  limit.kind = LimitKind::pids;
  CHECK(written(limit) == "{\"kind\": \"pids\", \"bytes\": null, \"used\": null}\n");
  CHECK(printed(facts::Limit{}) == R"({"kind":"none","bytes":null,"used":null})");
}

TEST_CASE("a reserve is null without a limit") {
  CHECK(written(session::LimitReserve{}) == "null\n");
  CHECK(written(session::LimitReserve{true, 64, 5}) == "{\"bytes\": 64, \"used\": 5}\n");
}

TEST_CASE("without an aftershock there is no last") {
  CHECK(written(facts::Aftershocks{}) == "{\"count\": 0, \"last_after_ms\": null}\n");
  CHECK(printed(facts::Aftershocks{2, 0}) == R"({"count":2,"last_after_ms":0})");
}

TEST_CASE("a verdict has a certainty only if it claims a cause") {
  facts::Verdict verdict;
  std::strcpy(verdict.summary, "nothing is known");
  CHECK(written(verdict) == R"({
  "code": "unknown",
  "certainty": null,
  "summary": "nothing is known",
  "evidence": []
}
)");
  verdict.code = VerdictCode::near_limit;
  std::strcpy(verdict.evidence[verdict.evidence_count++], "97 %");
  std::strcpy(verdict.evidence[verdict.evidence_count++], "of 1 GiB\t");
  CHECK(printed(verdict) == R"({"code":"near_limit","certainty":"possible",)"
                            R"("summary":"nothing is known","evidence":["97 %","of 1 GiB\t"]})");
  const auto read = read_back(verdict);
  CHECK(read.code == verdict.code);
  CHECK(read.certainty == verdict.certainty);
  CHECK(std::string{read.summary} == verdict.summary);
  REQUIRE(read.evidence_count == 2);
  CHECK(std::string{read.evidence[1]} == verdict.evidence[1]);
}

TEST_CASE("a thread without a number or a name") {
  session::Thread thread{};
  CHECK(written(thread) == "{\"tid\": null, \"name\": null}\n");
  thread.tid = 42;
  std::strcpy(thread.name, "loader");
  CHECK(printed(thread) == R"({"tid":42,"name":"loader"})");
}

TEST_CASE("figures that a device has not reported are null") {
  session::DeviceEvidence at{};
  CHECK(printed(at) ==
        R"({"total_bytes":null,"free_bytes":null,"used_bytes":null,"age_ms":null,)"
        R"("counted_bytes":0,"managed_bytes":0,"others_bytes":null,"limit_bytes":null,)"
        R"("pool_used_bytes":0,"pool_reserved_bytes":0,"torch_allocated_bytes":null,)"
        R"("torch_reserved_bytes":null,"torch_largest_free_bytes":null})");
  at = {1, 250, 10, 100, 30, 90, 20, 5, 8, 40, 50, 7};
  CHECK(written(at).find(R"("used_bytes": 90,)") != std::string::npos);
  CHECK(written(at).find(R"("others_bytes": 40,)") != std::string::npos);
}

namespace {

struct Stack {
  void write(auto& json) const { json.string("main"); }
};

}  // namespace

TEST_CASE("a request has its device's figures in a bundle, and its name elsewhere") {
  session::Failure failure{};
  failure.api = static_cast<std::uint16_t>(Api::malloc);
  failure.bytes = 77;
  session::Thread thread{};
  session::Device device{};
  device.vendor = 1;
  device.ordinal = 2;
  const facts::Request<Stack> request{failure, thread, "ENOMEM", {3, {1, 4}}, {}};
  const std::string asked = R"({"api":"malloc","size":77,"space":"heap",)";
  const std::string common =
      R"("error":"ENOMEM","repeats":3,"aftershocks":{"count":1,"last_after_ms":4},)"
      R"("thread":{"tid":null,"name":null},"stack":"main")";
  CHECK(printed(facts::ShownRequest<Stack>{request, "hip:2"}) ==
        asked + R"("device":"hip:2",)" + common + "}");
  CHECK(printed(facts::StoredRequest<Stack>{request, false, device}) ==
        asked + common + R"(,"device":null,"device_evidence":null})");
  CHECK(printed(facts::StoredRequest<Stack>{request, true, device})
            .find(R"("device":{"kind":"hip","id":2,"uuid":"GPU-0)") != std::string::npos);
}

TEST_CASE("a crash is null without a signal, and has what the kernel gives") {
  facts::Crash<Stack> crash{.stack = {}};
  CHECK(written(crash) == "null\n");
  crash.signal = 11;
  crash.name = "SIGSEGV";
  CHECK(printed(crash) == R"({"signal":11,"name":"SIGSEGV","address":null,"sender_pid":null,)"
                          R"("thread":{"tid":null,"name":null},"stack":"main"})");
  crash.has_address = true;
  crash.sender_pid = 5;
  CHECK(printed(crash).find(R"("address":0,"sender_pid":5,)") != std::string::npos);
}

TEST_CASE("a fact that is read back is the one that was written") {
  session::CgroupAccount account = full_cgroup();
  account.scope = static_cast<session::u32>(session::AccountScope::machine);
  account.largest_pid = 17;
  account.largest_recorded = 1;
  std::memcpy(account.largest_name, "worker", 6);
  const auto read = read_back(account);
  CHECK(std::memcmp(&read, &account, sizeof read) == 0);

  const auto limit = read_back(facts::Limit{LimitKind::soft, 900, 800});
  CHECK(limit.kind == LimitKind::soft);
  CHECK(limit.bytes == 900);
  CHECK(limit.used_bytes == 800);

  session::ChildDeath child{};
  child.pid = 17;
  child.verdict = static_cast<session::u32>(VerdictCode::cgroup_oom_kill);
  child.held_bytes = 900;
  std::strcpy(child.where, "train.py:42 make_batch");
  CHECK(printed(child) ==
        R"({"pid":17,"program":null,"verdict":"cgroup_oom_kill","held_bytes":900,)"
        R"("largest_bytes":0,"where":"train.py:42 make_batch","bundle":null})");
  const auto death = read_back(child);
  CHECK(std::memcmp(&death, &child, sizeof child) == 0);

  const auto aftershocks = read_back(facts::Aftershocks{3, 40});
  CHECK(aftershocks.count == 3);
  CHECK(aftershocks.last_after_ms == 40);
}

TEST_CASE("what another program wrote is not read") {
  const auto limit_of = [](const char* json) {
    return tools::fact_in<facts::Limit>(tools::parse_json(json));
  };
  CHECK_FALSE(limit_of("{}"));
  CHECK_FALSE(limit_of(R"({"limit": null})"));
  CHECK_FALSE(limit_of(R"({"limit": [1]})"));
  const auto odd = limit_of(R"({"limit": {"kind": "nonsense", "bytes": -1, "used": "all"}})");
  REQUIRE(odd);
  CHECK(odd->kind == LimitKind::none);
  CHECK(odd->bytes == 0);
  CHECK(odd->used_bytes == 0);
  const auto metadata = tools::fact_of<tools::bundles::Metadata>(tools::parse_json(
      R"({"failure": "3", "outcome": 7, "context": 5, "request": null, "crash": [], "exception_type": {}})"));
  CHECK(!metadata.failure);
  CHECK(!metadata.context);
  CHECK(!metadata.request);
  CHECK(!metadata.exception[0]);
  CHECK(metadata.outcome.empty());
}

TEST_CASE("a bundle's files are read as they were printed") {
  const auto again = [](const auto& file) {
    const tools::Json json = tools::parse_json(printed(file));
    return printed(tools::fact_of<std::remove_cvref_t<decltype(file)>>(json));
  };
  tools::bundles::Metadata metadata;
  CHECK(again(metadata) == printed(metadata));
  metadata.reason = "killed";
  metadata.verdict.code = VerdictCode::cgroup_oom_kill;
  metadata.verdict.limit = {LimitKind::cgroup, 900, 899};
  metadata.crash.signal = 11;
  metadata.crash.thread.tid = 42;
  metadata.request = {7, {1, 5}};
  metadata.failure = 3;
  metadata.context = "epoch 3";
  metadata.exception[2] = "out of memory";
  metadata.custom_metadata.json = {{"failure", 4}};
  CHECK(again(metadata) == printed(metadata));

  const tools::bundles::TreeProcess child{
      {1, 2, "python3", Relation::child, 3, 4, 5, "running", "oom_cpu_1"}, "ab-1-9"};
  const tools::bundles::OtherProcess other{7, "other", 8, true};
  CHECK(printed(child) ==
        R"({"pid":1,"ppid":2,"program":"python3","relation":"child","live_bytes":3,)"
        R"("peak_bytes":4,"rss_bytes":5,"outcome":"running","bundle":"oom_cpu_1",)"
        R"("process":"ab-1-9"})");
  const auto read = tools::fact_of<tools::bundles::Processes>(
      {{"processes", tools::facts_json(std::vector{child, child})},
       {"others", tools::facts_json(std::vector{other})},
       {"left_out", 3U}});
  REQUIRE(read.processes.size() == 2);
  CHECK(printed(read.processes[1]) == printed(child));
  REQUIRE(read.others.size() == 1);
  CHECK(printed(read.others[0]) == printed(other));
  CHECK(read.left_out == 3);
}
