#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <memory>

#include "common/bundle/bundle.h"
#include "common/system/files.h"
#include "tests/unit/common/bundle/scratch.h"
#include "tests/unit/common/bundle/session_image.h"

using namespace oomrec;
using namespace oomrec::bundle;
using oomrec::session::TrainingSession;

namespace {

Cause refusal(const TrainingSession& session) {
  Cause cause;
  cause.trigger = Trigger::soft_limit;
  cause.failure = session.failure;
  cause.alive = false;
  cause.realtime_ns = 1795256102'000'000'000U;
  return cause;
}

}  // namespace

TEST_CASE("a bundle names the failed request and the caller") {
  TrainingSession session;
  Scratch scratch;
  const auto path = scratch.write(session.view(), refusal(session));
  CHECK(path.filename() == "oom_cpu_20261121_101502_001");

  const auto metadata = scratch.json(path / "metadata.json");
  CHECK(metadata["reason"] == "soft_limit");
  CHECK(metadata["verdict"]["summary"] ==
        "numpy asked malloc for 412.0 MiB and was refused: the soft limit of 1.0 GiB is reached "
        "(live 987.3 MiB)");
  CHECK(metadata["limit"]["kind"] == "soft");
  CHECK(metadata["request"]["stack"].size() == 3);
  CHECK(metadata["request"]["stack"][2]["line"] == 31);
  CHECK(metadata["failure"] == session.failure);

  const auto manifest = scratch.json(path / "manifest.json");
  CHECK(manifest["event_count"] == 12);
  CHECK(manifest["reduced"].is_null());
  for (const auto& name : manifest["files"])
    CHECK(std::filesystem::exists(path / name.get<std::string>()));

  const auto events = scratch.json(path / "events.json");
  REQUIRE(events.size() == 12);
  CHECK(events.back()["event_type"] == "error");
  CHECK(events.back()["memory_allocated"] == std::int64_t{640} << 20);
  CHECK(events[9]["memory_allocated"] == std::int64_t{704} << 20);
  CHECK(events[0]["timestamp"].get<double>() == doctest::Approx(1795256100.0));

  const auto environment = scratch.json(path / "environment.json");
  CHECK(environment["argv"][3] == "***");
  CHECK(environment["argv"][4] == "--batch=8");
  CHECK(environment["meminfo"].is_null());
  CHECK(environment["versions"]["interpreter"] == "Python 3.11.7");
}

TEST_CASE("a bundle is complete or absent, whichever system call fails") {
  TrainingSession session;
  unsigned failures = 0;
  unsigned whole = 0;
  for (const int error : {EIO, ENOSPC}) {
    for (const bool from_then_on : {false, true}) {
      for (std::uint64_t n = 1;; ++n) {
        Scratch scratch;
        system::g_injection = {.fail_at = n, .error = error, .from_then_on = from_then_on};
        const Result result = scratch.try_write(session.view(), refusal(session));
        const std::uint64_t failed = system::g_injection.failed;
        system::g_injection = {};
        if (failed == 0) {
          CHECK(n > 50);
          CHECK(result == Result::written);
          break;
        }
        ++failures;
        if (result != Result::written) {
          CHECK(scratch.error == error);
          // No directory looks like a bundle; one that could not be removed is hidden.
          if (std::filesystem::exists(scratch.dumps))
            for (const auto& entry : std::filesystem::directory_iterator{scratch.dumps})
              CHECK(entry.path().filename().string().starts_with("."));
          continue;
        }
        ++whole;
        const std::filesystem::path path = scratch.work->path;
        const auto manifest = Scratch::json(path / "manifest.json");
        for (const auto& name : manifest["files"])
          CHECK(std::filesystem::exists(path / name.get<std::string>()));
        for (const char* name :
             {"metadata.json", "events.json", "environment.json", "symbols.json"})
          CHECK_FALSE(Scratch::json(path / name).is_null());
      }
    }
  }
  CHECK(failures > 200);
  CHECK(whole > 0);
}

namespace {

struct Recording {
  explicit Recording(const std::filesystem::path& bundle)
      : bytes(Scratch::text(bundle / "recording.oomrec")),
        view(session::Bytes::contiguous(bytes.data(), bytes.size())) {}
  std::string bytes;
  session::View view;
};

std::uint64_t frames_of(const session::View& view, std::uint32_t node) {
  return view.walk(node, [](std::uint64_t) {});
}

}  // namespace

TEST_CASE("the recording has the session's contents in fewer bytes") {
  TrainingSession session;
  Scratch scratch;
  const Recording copy{scratch.write(session.view(), refusal(session))};
  const session::View& view = copy.view;
  REQUIRE(view.problem() == session::Problem::none);
  CHECK(copy.bytes.size() < 200'000);
  CHECK(view.totals(Space::heap).live_bytes == session.view().totals(Space::heap).live_bytes);
  CHECK(view.string(view.header().executable) == "/opt/python/bin/python3.11");
  session::Failure failure{};
  REQUIRE(view.read(session::TableId::failures, session.failure, failure));
  CHECK(frames_of(view, failure.node) == 4);
  session::Lane lane;
  REQUIRE(view.read(session::TableId::lanes, 1, lane));
  session::Event event;
  REQUIRE(view.event(lane, lane.ring_next - 1, event));
  CHECK(event.bytes == std::uint64_t{64} << 20);
}

TEST_CASE("a bundle too large for its directory is written smaller") {
  TrainingSession session;
  // 3,000 stacks; the last is the largest.
  for (std::uint32_t i = 1; i <= 3000; ++i)
    session.holder(session.stack({session::native_frame(session.numpy, i),
                                  session::native_frame(session.libc, i)}),
                   Space::heap, 1000 + i, i);
  // Checkpoint rows of the request's stack, the largest and the smallest.
  session.open<session::Checkpoint>(session::TableId::checkpoints);
  session.open<session::CheckpointRow>(session::TableId::checkpoint_rows);
  for (const std::uint32_t holder : {1U, 3001U, 2U})
    session.add<session::CheckpointRow>(session::TableId::checkpoint_rows) = {holder, 5, 500};
  auto& checkpoint = session.add<session::Checkpoint>(session::TableId::checkpoints);
  checkpoint.time_ns = 5;
  checkpoint.first_row = 1;
  checkpoint.rows = 3;
  const auto checkpoint_rows = [](const Recording& copy) {
    std::vector<std::uint32_t> holders;
    session::CheckpointRow row{};
    for (std::uint64_t i = 1; i < copy.view.count(session::TableId::checkpoint_rows); ++i)
      if (copy.view.read(session::TableId::checkpoint_rows, i, row)) holders.push_back(row.holder);
    return holders;
  };
  Scratch scratch;
  SUBCASE("all of it") {
    const auto path = scratch.write(session.view(), refusal(session));
    CHECK(checkpoint_rows(Recording{path}) == std::vector<std::uint32_t>{1, 3001, 2});
    CHECK(Scratch::json(path / "manifest.json")["reduced"].is_null());
    CHECK(Recording{path}.view.count(session::TableId::holders) == 3002);
  }
  SUBCASE("without events") {
    const Recording whole{scratch.write(session.view(), refusal(session))};
    scratch.max_total_bytes = 256 * 1024 + whole.bytes.size();
    const auto path = scratch.write(session.view(), refusal(session));
    CHECK(Scratch::json(path / "manifest.json")["reduced"] == "without_events");
    CHECK(Scratch::json(path / "events.json").size() == 1);  // the failed request
    const Recording copy{path};
    CHECK(copy.view.count(session::TableId::holders) == 3002);
    session::Lane lane;
    REQUIRE(copy.view.read(session::TableId::lanes, 1, lane));
    CHECK(lane.ring_slots == 0);
  }
  SUBCASE("the largest stacks") {
    scratch.max_total_bytes = 450 * 1024;
    const auto path = scratch.write(session.view(), refusal(session));
    CHECK(Scratch::json(path / "manifest.json")["reduced"] == "largest_stacks");
    const Recording copy{path};
    REQUIRE(copy.view.problem() == session::Problem::none);
    REQUIRE(copy.view.count(session::TableId::holders) == 1001);
    session::Holder first{};
    session::Holder second{};
    REQUIRE(copy.view.read(session::TableId::holders, 1, first));
    REQUIRE(copy.view.read(session::TableId::holders, 2, second));
    CHECK(first.live_bytes == std::uint64_t{640} << 20);
    CHECK(frames_of(copy.view, first.node) == 4);
    CHECK(second.live_bytes == 4000);
    std::vector<std::uint64_t> offsets;
    copy.view.walk(second.node,
                   [&](std::uint64_t frame) { offsets.push_back(session::offset_of(frame)); });
    REQUIRE(offsets.size() == 3);
    CHECK(offsets[0] == 3000);
    CHECK(offsets[1] == 3000);
    session::Failure failure{};
    REQUIRE(copy.view.read(session::TableId::failures, session.failure, failure));
    CHECK(frames_of(copy.view, failure.node) == 4);
    CHECK(copy.view.totals(Space::heap).live_bytes == std::int64_t{640} << 20);
    CHECK(copy.view.count(session::TableId::checkpoints) == 2);
    CHECK(checkpoint_rows(copy) == std::vector<std::uint32_t>{1, 2, 0});
  }
  SUBCASE("without checkpoints, if even they do not fit") {
    for (std::uint32_t i = 0; i < 50'000; ++i)
      session.add<session::CheckpointRow>(session::TableId::checkpoint_rows) = {1, 5, 500};
    scratch.max_total_bytes = 450 * 1024;
    const auto path = scratch.write(session.view(), refusal(session));
    CHECK(Scratch::json(path / "manifest.json")["reduced"] == "without_checkpoints");
    const Recording copy{path};
    CHECK(copy.view.count(session::TableId::holders) == 1001);
    CHECK(copy.view.count(session::TableId::checkpoints) == 0);
    CHECK(copy.view.count(session::TableId::checkpoint_rows) == 0);
  }
}

TEST_CASE("a later completion changes outcome and repeats, nothing else") {
  TrainingSession session;
  Scratch scratch;
  const auto path = scratch.write(session.view(), refusal(session));
  auto expected = Scratch::json(path / "metadata.json");
  CHECK(expected["outcome"] == "running");
  REQUIRE(complete(OutsideHooks::in_hook(), path.c_str(), {OutcomeKind::exited, 1}, *scratch.work));
  expected["outcome"] = "exited 1";
  CHECK(Scratch::json(path / "metadata.json") == expected);
  REQUIRE(complete(OutsideHooks::in_hook(), path.c_str(), {OutcomeKind::recovered, 0, 1234},
                   *scratch.work));
  expected["outcome"] = "recovered";
  expected["request"]["repeats"] = 1234;
  CHECK(Scratch::json(path / "metadata.json") == expected);
  CHECK_FALSE(complete(OutsideHooks::in_hook(), "/nowhere", {}, *scratch.work));
}

TEST_CASE("an exception's texts are added later, and stay when the outcome is completed") {
  TrainingSession session;
  Scratch scratch;
  const auto path = scratch.write(session.view(), refusal(session));
  auto expected = Scratch::json(path / "metadata.json");
  CHECK(expected["exception_type"].is_null());
  CHECK(expected["custom_metadata"] == tools::Json::object());
  const InHook hook = OutsideHooks::in_hook();
  // Longer than one read, and longer again.
  for (const std::size_t bytes : {std::size_t{10}, text::kMaxTextBytes, std::size_t{3}}) {
    text::ExceptionTexts texts;
    const std::string message(bytes, '"'), traceback(bytes, '\x01');
    texts.type = "MemoryError";
    texts.message = message;
    texts.traceback = traceback;
    texts.context = "epoch 3";
    texts.metadata = R"({"outcome": "mine", "repeats": 7, "verdict": {"limit": [1]}})";
    texts.objects = "[1, 2]";
    REQUIRE(complete_exception(hook, path.c_str(), texts, *scratch.work));
    expected["exception_type"] = "MemoryError";
    expected["exception_message"] = message;
    expected["exception_traceback"] = traceback;
    expected["context"] = "epoch 3";
    expected["custom_metadata"] = tools::parse_json(texts.metadata);
    CHECK(Scratch::json(path / "metadata.json") == expected);
    CHECK(Scratch::json(path / "objects.json") == tools::Json{1, 2});
    CHECK(Scratch::json(path / "manifest.json")["files"].back() == "objects.json");
    REQUIRE(complete(hook, path.c_str(), {OutcomeKind::recovered, 0, 5}, *scratch.work));
    expected["outcome"] = "recovered";
    expected["request"]["repeats"] = 5;
    CHECK(Scratch::json(path / "metadata.json") == expected);
  }
}

TEST_CASE("the program's texts are in a bundle from the start, or absent") {
  TrainingSession session;
  Scratch scratch;
  text::ExceptionTexts texts;
  texts.metadata = R"({"repeats": 7})";
  texts.objects = "[]";
  Cause cause = refusal(session);
  cause.failure = 0;
  cause.trigger = Trigger::exception;
  cause.texts = &texts;
  cause.label = "epoch 3";
  const auto path = scratch.write(session.view(), cause);
  const auto metadata = Scratch::json(path / "metadata.json");
  CHECK(metadata["custom_metadata"]["repeats"] == 7);
  CHECK(metadata["context"] == "epoch 3");
  CHECK(metadata["verdict"]["code"] == "exception");
  CHECK(Scratch::json(path / "objects.json").empty());
  const auto manifest = Scratch::json(path / "manifest.json");
  for (const auto& name : manifest["files"])
    CHECK(std::filesystem::exists(path / name.get<std::string>()));
  // No request, so no repeats; the program's own key must not be mistaken for it.
  REQUIRE(complete(OutsideHooks::in_hook(), path.c_str(), {OutcomeKind::recovered, 0, 5},
                   *scratch.work));
  CHECK(Scratch::json(path / "metadata.json")["custom_metadata"]["repeats"] == 7);
}
