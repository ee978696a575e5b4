// Leaks of handmade recordings: their stacks, sums and severity.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>

#include "tests/unit/tools/recording_image.h"
#include "tools/findings/leaks/detect.h"
#include "tools/findings/leaks/severity.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::RecordingImage;

namespace {

constexpr std::uint64_t kMiB = 1024 * 1024;
constexpr std::uint32_t kCheckpoints = 20;

// Holders over twenty seconds, each a function of the part 0…1 of the time.
class Image : public RecordingImage {
 public:
  using Held = std::function<double(double)>;  // MiB

  void holds(std::uint32_t node, const Held& held, Space space = Space::heap) {
    const auto live = static_cast<std::uint64_t>(held(1) * kMiB);
    holder(node, space, live, live, 2 * live);
    held_.push_back(held);
  }

  std::uint64_t line(const char* function) { return python("/p/train.py", function, 10); }
  std::uint32_t one_frame(const char* function) { return stack({line(function)}); }

  std::string finish() {
    const std::uint64_t start = session().header().start_monotonic_ns;
    for (std::uint32_t i = 0; i < checkpoints; ++i) {
      std::uint32_t first = 0;
      for (std::uint32_t at = 0; at < held_.size(); ++at) {
        const double part = static_cast<double>(i) / checkpoints;
        std::uint32_t row = 0;
        REQUIRE(session().checkpoint_rows.append(kHook, row, [&](session::CheckpointRow& entry) {
          entry.holder = at + 1;
          entry.time_ms =
              i == 0 ? static_cast<std::uint32_t>(~std::uint64_t{0} / 1'000'000) : i * 1000;
          entry.live_bytes = static_cast<std::uint64_t>(held_[at](part) * kMiB);
        }));
        if (first == 0) first = row;
      }
      std::uint32_t number = 0;
      REQUIRE(session().checkpoints.append(kHook, number, [&](session::Checkpoint& entry) {
        entry.first_row = first;
        entry.rows = static_cast<std::uint32_t>(held_.size());
        entry.time_ns = start + i * std::uint64_t{1'000'000'000} - (i == 0 ? 1'000'000 : 0);
      }));
    }
    session().header().last_tick_ns = start + checkpoints * std::uint64_t{1'000'000'000};
    return path();
  }

  std::uint32_t checkpoints = kCheckpoints;

 private:
  std::vector<Held> held_;
};

struct Read {
  explicit Read(Image& image) : recording(image.finish()) {}

  findings::Leaks leaks() { return findings::leaks_of(recording, stacks, locations); }
  std::string function_of(const findings::Leak& leak) const {
    return locations[leak.subject].function;
  }

  recording::Recording recording;
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};
};

double steady(double) { return 50; }

}  // namespace

TEST_CASE("growing stacks are leaks, largest growth first; others are not") {
  Image image;
  image.holds(image.one_frame("slow"), [](double part) { return 10 * part; });
  image.holds(image.one_frame("steady"), steady);
  image.holds(image.one_frame("fast"), [](double part) { return 100 * part; });
  image.holds(image.one_frame("warms_up"), [](double part) { return std::min(part * 5, 1.0) * 9; });
  Read read{image};

  const findings::Leaks leaks = read.leaks();

  CHECK(leaks.checkpoints == kCheckpoints + 1);
  CHECK(leaks.seconds == doctest::Approx(20).epsilon(0.001));
  REQUIRE(leaks.leaks.size() == 2);
  const findings::Leak& fast = leaks.leaks[0];
  CHECK(read.function_of(fast) == "fast");
  CHECK(read.function_of(leaks.leaks[1]) == "slow");
  CHECK(fast.growth.bytes_per_second == doctest::Approx(5 * kMiB).epsilon(0.01));
  CHECK(fast.live_bytes == 100 * kMiB);
  CHECK(fast.survivors == doctest::Approx(0.5));
  CHECK(fast.confidence == doctest::Approx(0.5 + 0.3 + 0.1).epsilon(0.02));
  CHECK(leaks.bytes() == doctest::Approx(110 * kMiB).epsilon(0.02));
}

TEST_CASE("if nothing leaks, what has grown most is named; memory that came and went is not") {
  const auto in_the_first_half = [](double part) { return std::min(part, 0.5) * 80; };
  Image image;
  image.holds(image.one_frame("stops"), in_the_first_half);
  image.holds(image.one_frame("stops_early"), [](double part) { return std::min(part, 0.1) * 90; });
  image.holds(image.one_frame("steady"), steady);
  image.holds(image.one_frame("came_and_went"),
              [](double part) { return 1 + (part < 0.5 ? part : 1 - part) * 200; });
  {
    Read read{image};
    const findings::Leaks leaks = read.leaks();
    CHECK_FALSE(leaks.detected());
    REQUIRE(leaks.unsteady);
    CHECK(read.locations[read.stacks.innermost(leaks.unsteady->stack)].function == "stops");
    CHECK(leaks.unsteady->bytes == doctest::Approx(20 * kMiB).epsilon(0.05));
  }
  Image leaking;
  leaking.holds(leaking.one_frame("stops"), in_the_first_half);
  leaking.holds(leaking.one_frame("leaks"), [](double part) { return 10 * part; });
  Read read{leaking};
  const findings::Leaks leaks = read.leaks();
  CHECK(leaks.detected());
  CHECK_FALSE(leaks.unsteady);
}

TEST_CASE("what grew like a leak and stopped, as in a worker that is paused") {
  const auto unsteady_of = [](const Image::Held& held) {
    Image image;
    image.checkpoints = 60;
    image.holds(image.one_frame("steady"), steady);
    image.holds(image.one_frame("featurize"), held);
    Read read{image};
    const findings::Leaks leaks = read.leaks();
    CHECK_FALSE(leaks.detected());
    return leaks.unsteady;
  };
  const auto stopped = unsteady_of([](double part) { return 1 + std::min(part, 0.2) * 1600; });
  REQUIRE(stopped);
  REQUIRE(stopped->stopped_s);
  CHECK(*stopped->stopped_s == doctest::Approx(47).epsilon(0.03));
  CHECK(stopped->bytes == doctest::Approx(320 * kMiB).epsilon(0.15));
  // Taken at once, too small, or given back.
  CHECK_FALSE(unsteady_of([](double part) { return part < 0.1 ? 1.0 : 320; }));
  CHECK_FALSE(unsteady_of([](double part) { return 1 + std::min(part, 0.2) * 30; }));
  CHECK_FALSE(unsteady_of([](double part) { return part < 0.2 ? 1 + part * 1600 : 1; }));
}

TEST_CASE("threads and the interpreter's functions do not split a leak") {
  Image image;
  const std::uint32_t python = image.module("/opt/oomrec-test/bin/python3.11", 0x1000);
  const auto inner = [&](std::uint64_t offset) { return session::native_frame(python, offset); };
  for (const std::uint64_t offset : {1U, 2U, 3U})
    image.holds(image.stack({inner(9), image.line("keep"), inner(offset)}),
                [](double part) { return 0.2 * part; });
  Read read{image};

  const findings::Leaks leaks = read.leaks();

  REQUIRE(leaks.leaks.size() == 1);
  CHECK(leaks.leaks[0].stacks == 1);
  CHECK(leaks.leaks[0].growth.bytes == doctest::Approx(0.6 * kMiB).epsilon(0.02));
}

TEST_CASE("many small stacks of one line are one leak") {
  Image image;
  const std::uint32_t library = image.module("/opt/libtorch_cpu.so", 0x1000);
  const std::uint64_t step = image.line("step");
  for (std::uint64_t i = 1; i <= 10; ++i)
    image.holds(image.stack({step, session::native_frame(library, i)}),
                [](double part) { return 0.2 * part; });
  Read read{image};

  const findings::Leaks leaks = read.leaks();

  REQUIRE(leaks.leaks.size() == 1);
  CHECK(leaks.leaks[0].stacks == 10);
  CHECK(read.function_of(leaks.leaks[0]) == "step");
  CHECK(leaks.leaks[0].growth.bytes == doctest::Approx(2 * kMiB).epsilon(0.02));
  CHECK(findings::suggestion_of(leaks.leaks[0], read.stacks, read.locations).find("loss.item()") !=
        std::string::npos);
}

TEST_CASE("memory that moves from one line of a function to another is not a leak") {
  const auto fills = [](double part) { return part < 0.3 ? 100 * part : 30 - 40 * (part - 0.3); };
  const auto replaces = [](double part) { return part < 0.3 ? 0 : 40 * (part - 0.3); };
  for (const bool moves : {true, false}) {
    Image image;
    image.holds(image.stack({image.python("/p/cache.py", "put", 10)}), moves ? fills : steady);
    image.holds(image.stack({image.python("/p/cache.py", "put", 20)}), replaces);
    Read read{image};
    CHECK(read.leaks().detected() != moves);
  }
}

TEST_CASE("imported modules are not a leak") {
  Image image;
  const std::uint64_t import = image.python("<frozen importlib._bootstrap>", "_find_and_load", 1);
  const auto grows = [](double part) { return 50 * part; };
  image.holds(image.stack({image.line("main"), import}), grows);
  image.holds(image.stack({import, image.python("/usr/lib/python3.11/json/decoder.py", "f", 1)}),
              grows);
  image.holds(image.stack({import, image.line("at_import")}), grows);
  Read read{image};

  const findings::Leaks leaks = read.leaks();

  REQUIRE(leaks.leaks.size() == 1);
  CHECK(read.function_of(leaks.leaks[0]) == "at_import");
}

TEST_CASE("leaks of PyTorch's tensors are listed, but not added to the spaces that contain them") {
  Image image;
  const auto grows = [](double part) { return 40 * part; };
  image.holds(image.one_frame("tensors"), grows, Space::torch);
  image.holds(image.one_frame("segments"), grows, Space::cuda);
  Read read{image};

  const findings::Leaks leaks = read.leaks();

  CHECK(leaks.leaks.size() == 2);
  CHECK(leaks.bytes() == doctest::Approx(40 * kMiB).epsilon(0.02));
}

TEST_CASE("a sampled recording needs significant growth") {
  for (const auto& [mib, found] : {std::pair{4.0, false}, std::pair{40.0, true}}) {
    Image image;
    image.session().header().interval_bytes = 512 * 1024;
    image.holds(image.one_frame("keep"), [mib = mib](double part) { return mib * part; });
    image.session().full_holders.at(1).flags = session::kHolderEstimated;
    Read read{image};
    CHECK(read.leaks().detected() == found);
  }
}

TEST_CASE("severity, and the limit that is reached first") {
  struct Row {
    double mib;
    std::uint64_t limit_mib;
    std::string_view severity, limit;
  };
  for (const Row& row : {Row{1, 0, "low", ""}, Row{20, 0, "medium", ""}, Row{200, 0, "high", ""},
                         Row{2000, 0, "critical", ""}, Row{20, 2'000'000, "medium", "--limit"},
                         Row{20, 20'000, "high", "--limit"}, Row{20, 100, "critical", "--limit"}}) {
    CAPTURE(row.mib);
    CAPTURE(row.limit_mib);
    Image image;
    image.holds(image.one_frame("keep"), [&](double part) { return row.mib * part; });
    image.session().header().ram_bytes = 0;
    image.session().header().soft_limit_bytes = row.limit_mib * kMiB;
    Read read{image};
    const findings::Leaks leaks = read.leaks();
    const auto reach =
        findings::first_reached(leaks, read.recording, recording::timeline_of(read.recording));
    CHECK(findings::severity_of(leaks, reach) == row.severity);
    CHECK((reach ? reach->name : "") == row.limit);
  }
  CHECK(findings::severity_of({}, std::nullopt) == "none");
}

TEST_CASE("a recording without checkpoints has no result") {
  RecordingImage image;
  image.holder(image.stack({image.python("/p/a.py", "f", 1)}), Space::heap, 100 * kMiB, 1, 1);
  const recording::Recording recording{image.path()};
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};

  const findings::Leaks leaks = findings::leaks_of(recording, stacks, locations);

  CHECK(leaks.checkpoints == 1);
  CHECK_FALSE(leaks.has_enough_checkpoints());
  CHECK_FALSE(leaks.detected());
}

TEST_CASE("the suggestion depends on the stack of the leak") {
  Image image;
  const auto grows = [](double part) { return 30 * part; };
  const auto in = [&](const char* module) {
    return session::native_frame(image.module(module, 0x1000), 1);
  };
  struct Row {
    std::uint32_t node;
    Space space;
    const char* word;
  };
  const std::uint64_t line = image.line("keep");
  const Row rows[] = {
      {image.stack({line, in("/x/libtorch_cpu.so")}), Space::heap, "loss.item()"},
      {image.stack({line, in("/x/libtorch_cpu.so"),
                    image.python("", "torch::profiler::impl::begin_op", 1)}),
       Space::heap, "torch.profiler"},
      {image.stack({line, in("/x/libcudart.so")}), Space::cuda, "(del)"},
      {image.stack({line, in("/x/_multiarray_umath.so")}), Space::heap, "slice.copy()"},
      {image.stack({line, in("/x/_ctypes.so")}), Space::heap, "ctypes"},
      {image.stack({line}), Space::map, "gc.get_referrers"},
      {image.stack({line}), Space::heap, "maxsize"},
      {image.stack({in("/x/program")}), Space::map, "munmap"},
      {image.stack({in("/x/program"), in("/x/other")}), Space::heap, "return path without free"},
  };
  for (const Row& row : rows) image.holds(row.node, grows, row.space);
  Read read{image};
  const findings::Leaks leaks = read.leaks();
  const std::vector<std::string> texts =
      findings::suggestions_of(leaks, read.stacks, read.locations);

  CHECK(leaks.leaks.size() == std::size(rows));
  for (const Row& row : rows) {
    CAPTURE(row.word);
    CHECK(std::any_of(texts.begin(), texts.end(), [&](const std::string& text) {
      return text.find(row.word) != std::string::npos;
    }));
  }
}
