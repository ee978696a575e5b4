// Redaction of texts, recordings, JSON files and whole bundles.
#include <doctest/doctest.h>

#include <fstream>

#include "tests/unit/tools/readable_image.h"
#include "tools/base/error.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/redact/files.h"
#include "tools/bundles/redact/recording.h"
#include "tools/bundles/redact/text_redactor.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::ReadableImage;

namespace {

// In the recording: host node7, working directory /home/me, and a file of the user "alice".
struct Example : ReadableImage {
  Example() { python("/home/alice/src/deep/model.py", "forward", 3); }
  bundles::TextRedactor redactor() const { return bundles::TextRedactor{*source().recording}; }
};

}  // namespace

TEST_CASE("a path identifies the code, not the machine") {
  const bundles::TextRedactor redactor = Example{}.redactor();
  const std::pair<const char*, const char*> paths[] = {
      {"/home/me/train.py", "train.py"},
      {"/home/me/pkg/sub/train.py", "sub/train.py"},
      {"/home/alice/model.py", "model.py"},
      {"/home/alice/src/deep/model.py", "deep/model.py"},
      {"/data/alice/model.py", "data/model.py"},
      {"/mnt/x/alice/y/model.py", "y/model.py"},
      {"/srv/jobs/run7/train.py", "run7/train.py"},
      {"/home/alice/v/lib/python3.11/site-packages/numpy/core/n.py",
       "/site-packages/numpy/core/n.py"},
      {"/home/alice/.pyenv/lib/python3.11/json/decoder.py", "/lib/python3.11/json/decoder.py"},
      {"/usr/lib/x86_64-linux-gnu/libm.so.6", "/usr/lib/x86_64-linux-gnu/libm.so.6"},
      {"<frozen importlib._bootstrap>", "<frozen importlib._bootstrap>"},
      {"train.py", "train.py"},
      {"/home/me", "…"},
      {"", ""},
  };
  for (const auto& [whole, shortened] : paths)
    CHECK(redactor.path(whole) == std::string{shortened});
}

TEST_CASE("a text loses only paths and names") {
  const bundles::TextRedactor redactor = Example{}.redactor();
  CHECK(redactor.text("1.0 GiB of 2 GiB in use (99 %), at 10:15") ==
        "1.0 GiB of 2 GiB in use (99 %), at 10:15");
  CHECK(redactor.text("in /home/alice/src/model.py:31: too large") ==
        "in src/model.py:31: too large");
  CHECK(redactor.text("memcg=/user.slice/a/b.scope,task=python3") ==
        "memcg=a/b.scope,task=python3");
  CHECK(redactor.text("on node7 by alice") == "on … by …");
  CHECK(redactor.text("malice aforethought, node77") == "malice aforethought, node77");
  CHECK(redactor.text("10 MiB / 20 MiB") == "10 MiB / 20 MiB");
}

TEST_CASE("the recording loses everything about its machine, and keeps all stacks") {
  Example image;
  const auto line = image.python("/home/alice/job/train.py", "make", 31);
  const auto secret = image.label("customer Smith"), again = image.label("customer Smith");
  const auto other = image.label("x");
  const auto holder = [&](std::uint64_t label, std::uint64_t bytes) {
    image.holder(image.node(image.node(image.node(0, image.group("loader")), label), line),
                 Space::heap, bytes, 1);
  };
  holder(secret, 10), holder(again, 20), holder(other, 40);
  image.string("nobody refers to this");
  image.header().cgroup_path = image.string("/user.slice/user-1000.slice/job");
  image.header().heap_note = image.string("heap not observed: /home/alice/lib/liba.so");
  std::strcpy(image.header().death.kernel_line, "oom-kill: memcg=/x/y/z/job-17,task=python3");
  std::strcpy(image.header().shared.path, "/dev/shm/alice/x/file");
  const bundles::Source source = image.source();
  const std::string bytes = bundles::redacted_recording(
      *source.recording, bundles::TextRedactor{*source.recording}, nullptr);

  for (const char* word : {"node7", "/home", "alice", "--token", "customer", "Smith",
                           "nobody refers", "user.slice", "/x/y", "batch=8"})
    CHECK_MESSAGE(bytes.find(word) == bytes.npos, std::string{word});

  tests::ScratchDirectory directory;
  const std::string path = directory.path() + "/recording.oomrec";
  std::ofstream{path, std::ios::binary} << bytes;
  const bundles::Source read = bundles::open_source(path);
  const recording::Recording& recording = *read.recording;
  CHECK(recording.arguments().empty());
  CHECK(recording.text(recording.header().executable) == "bin/python3.11");
  CHECK(recording.text(recording.header().heap_note) == "heap not observed: lib/liba.so");
  CHECK(std::string{recording.header().death.kernel_line} ==
        "oom-kill: memcg=z/job-17,task=python3");
  CHECK(recording.header().pid == 4711);
  const std::vector<recording::HolderFigures> before = source.recording->holders(),
                                              after = recording.holders();
  REQUIRE(after.size() == before.size());
  std::vector<std::string> labels;
  for (std::size_t i = 0; i < after.size(); ++i) {
    CHECK(after[i].live_bytes == before[i].live_bytes);
    const auto stack = read.locations->of_stack(after[i].node);
    CHECK(stack.size() == source.locations->of_stack(before[i].node).size());
    if (after[i].live_bytes > 40) continue;
    CHECK((*read.locations)[stack[0]].function == "make");
    CHECK((*read.locations)[stack[0]].file == "job/train.py");
    CHECK((*read.locations)[stack[0]].line == 31);
    labels.push_back((*read.locations)[stack[1]].function);
  }
  CHECK(labels == std::vector<std::string>{"[1]", "[1]", "[2]"});
}

TEST_CASE("members about machine and user are cleared, paths in the others are shortened") {
  const bundles::TextRedactor redactor = Example{}.redactor();
  const Json redacted = bundles::redacted_file(
      "environment.json",
      {{"host", "node7"},
       {"argv", {"python3", "train.py"}},
       {"cwd", "/home/me"},
       {"ram_bytes", 17},
       {"environment", {{"PYTHONPATH", "/home/alice"}}},
       {"modules", {{{"path", "/home/alice/lib/liba.so"}, {"build_id", "abc"}}}},
       {"gpus", {{{"uuid", "GPU-1"}, {"name", "Card"}}}}},
      redactor);
  CHECK(redacted == Json{{"host", nullptr},
                         {"argv", nullptr},
                         {"cwd", nullptr},
                         {"ram_bytes", 17},
                         {"environment", Json::object()},
                         {"modules", {{{"path", "lib/liba.so"}, {"build_id", "abc"}}}},
                         {"gpus", {{{"uuid", nullptr}, {"name", "Card"}}}}});
  const Json metadata =
      bundles::redacted_file("metadata.json",
                             {{"context", "for alice"},
                              {"custom_metadata", {{"customer", "Smith"}}},
                              {"verdict", {{"summary", "no room in /home/me/out/x"}}}},
                             redactor);
  CHECK(metadata == Json{{"context", nullptr},
                         {"custom_metadata", Json::object()},
                         {"verdict", {{"summary", "no room in out/x"}}}});
}

TEST_CASE("a redacted bundle is marked, and does not overwrite another") {
  Example image;
  const bundles::Source source = image.source();
  tests::ScratchDirectory directory;
  const std::filesystem::path to = directory.path() + "/given";

  bundles::write_redacted(source, to);

  const bundles::Source read = bundles::open_source(to);
  CHECK(bundles::is_redacted(read));
  CHECK_FALSE(bundles::is_redacted(source));
  CHECK(read.failure() == source.failure());
  CHECK(read.trigger() == source.trigger());
  CHECK(read.outcome() == source.outcome());
  CHECK(read.verdict().code == source.verdict().code);
  CHECK_THROWS_AS(bundles::write_redacted(source, to), Error);
}
