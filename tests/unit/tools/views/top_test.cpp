// The live view's rows, and their figures while the session changes.
#include <doctest/doctest.h>
#include <unistd.h>

#include <fstream>

#include "tests/unit/tools/recording_image.h"
#include "tools/recording/live/mapping.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/views/top/figures.h"
#include "tools/views/top/table.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::RecordingImage;
using oomrec::tests::ScratchDirectory;

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

// main calls load, which calls itself and then numpy; and keep, in another file.
struct Live {
  RecordingImage image;
  const std::uint64_t main = image.python("/app/train.py", "main", 1);
  const std::uint64_t load = image.python("/app/load.py", "load", 2);
  const std::uint64_t ones = image.python("/v/site-packages/numpy/n.py", "ones", 3);
  const std::uint64_t keep = image.python("/app/train.py", "keep", 4);
  const std::uint64_t pinned = image.python("/app/train.py", "pin", 5);
  recording::MappedFile mapped;
  std::unique_ptr<recording::Recording> recording;
  std::unique_ptr<recording::Locations> locations;
  std::unique_ptr<recording::Stacks> stacks;
  std::unique_ptr<views::Table> table;
  views::LiveHolders holders;
  std::uint64_t now_ns = kSecond;

  Live() {
    image.holder(image.stack({main, load, load, ones}), Space::heap, 3000, 0, 3000);
    image.holder(image.stack({main, keep}), Space::map, 1000, 0, 1000);
    image.holder(image.stack({main, pinned}), Space::torch, 700, 0, 700);
    mapped = recording::map_file(image.path());
    REQUIRE(mapped.bytes != nullptr);
    recording = std::make_unique<recording::Recording>(image.path(), mapped.bytes, mapped.size);
    locations = std::make_unique<recording::Locations>(*recording, recording::StoredSymbols{});
    stacks = std::make_unique<recording::Stacks>(*recording, *locations);
    table = std::make_unique<views::Table>(*stacks, *locations);
    refresh();
  }

  void refresh() {
    holders.refresh(*recording, now_ns);
    now_ns += kSecond;
  }

  // The text of each row with a figure: "load  load.py 3000".
  std::vector<std::string> rows(const views::Choice& choice,
                                std::uint64_t views::Row::*figure = &views::Row::own) {
    std::vector<std::string> texts;
    for (const views::Row& row : table->rows(holders, choice, 100).rows)
      texts.push_back(views::row_text(row, choice.by, *table) + " " + std::to_string(row.*figure));
    return texts;
  }
};

views::Choice choice(views::By by, views::SortBy sort = views::SortBy::own,
                     recording::Frames frames = recording::Frames::both) {
  views::Choice chosen;
  chosen.by = by;
  chosen.sort = sort;
  chosen.frames = frames;
  return chosen;
}

using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("rows by stack, by function and by file") {
  Live live;
  CHECK(live.rows({}) == Texts{"load.py:2 load ← load.py:2 load ← train.py:1 main 3000",
                               "train.py:4 keep ← train.py:1 main 1000"});
  CHECK(live.rows(choice(views::By::function)) ==
        Texts{"load  load.py 3000", "keep  train.py 1000", "main  train.py 0", "ones  n.py 0"});
  CHECK(live.rows(choice(views::By::file)) ==
        Texts{"/app/load.py 3000", "/app/train.py 1000", "/v/site-packages/numpy/n.py 0"});
}

TEST_CASE("a total counts a recursive stack once") {
  Live live;
  CHECK(
      live.rows(choice(views::By::function, views::SortBy::total), &views::Row::total) ==
      Texts{"main  train.py 4000", "load  load.py 3000", "ones  n.py 3000", "keep  train.py 1000"});
  CHECK(live.rows(choice(views::By::file, views::SortBy::total), &views::Row::total)[0] ==
        "/app/train.py 4000");
}

TEST_CASE("rows follow the chosen space, search and frames") {
  Live live;
  views::Choice chosen = choice(views::By::function);
  chosen.space = Space::torch;
  CHECK(live.rows(chosen) == Texts{"pin  train.py 700", "main  train.py 0"});
  chosen = choice(views::By::stack);
  chosen.search = "NUMPY";
  CHECK(live.rows(chosen).size() == 1);
  CHECK(live.table->rows(live.holders, chosen, 100).held == 4000);
  chosen = choice(views::By::file);
  chosen.search = "train";
  CHECK(live.rows(chosen) == Texts{"/app/train.py 1000"});
  chosen = choice(views::By::function, views::SortBy::own, recording::Frames::native);
  // A stack of which nothing would be left stays as it is.
  CHECK(live.rows(chosen) == live.rows(choice(views::By::function)));
}

TEST_CASE("a session that continues: new holders, growth and its rate") {
  Live live;
  live.rows(choice(views::By::function));  // resolves the names of stacks
  live.image.session().full_holders.at(1).live_bytes = 3000 + 8'000'000;
  const std::uint64_t later = live.image.python("/app/late.py", "later", 6);
  live.image.holder(live.image.stack({live.main, later}), Space::heap, 500, 0, 500);
  live.refresh();
  CHECK(live.rows(choice(views::By::function)) == Texts{"load  load.py 8003000",
                                                        "keep  train.py 1000", "later  late.py 500",
                                                        "main  train.py 0", "ones  n.py 0"});
  const auto growth = [&] {
    return live.table->rows(live.holders, choice(views::By::function, views::SortBy::growth), 1)
        .rows[0]
        .growth;
  };
  CHECK(growth() == doctest::Approx(8'000'000));  // over the first second
  live.refresh();
  CHECK(growth() == doctest::Approx(4'000'000));
  for (int i = 0; i < 80; ++i) live.refresh();
  CHECK(growth() == 0);
}

TEST_CASE("entries that are used again are not shown with their earlier names") {
  Live live;
  session::Session& session = live.image.session();
  const std::uint32_t module = live.image.module("/lib/first.so", 0x1000);
  live.image.holder(live.image.stack({session::native_frame(module, 0x10)}), Space::heap, 500, 0,
                    500);
  live.refresh();
  const Texts before = live.rows({});
  REQUIRE(before.size() == 3);
  CHECK(before[1].starts_with("train.py:4 keep"));
  CHECK(before[2].find("first.so") != std::string::npos);

  session.codes.at(session::code_of(live.keep)) = {
      session.add_string(live.image.kHook, "/app/l.py"),
      session.add_string(live.image.kHook, "late"), 9, 0};
  session.modules.at(module).path = session.add_string(live.image.kHook, "/lib/second.so");
  session.holders.at(1).space = static_cast<std::uint8_t>(Space::torch);
  session.header().forgotten_stacks = 1;
  live.refresh();
  const Texts after = live.rows({});
  REQUIRE(after.size() == 2);
  CHECK(after[0] == "l.py:9 late ← train.py:1 main 1000");
  CHECK(after[1].find("second.so") != std::string::npos);
}

TEST_CASE("only the requested number of rows, the largest first") {
  Live live;
  for (std::uint64_t i = 1; i <= 1000; ++i)
    live.image.holder(live.image.stack({live.image.python("/app/many.py", "f", 100)}), Space::heap,
                      10 + i * 7 % 1000, 0, 0);
  live.image.holder(live.image.stack({live.image.python("/app/many.py", "g", 7)}), Space::heap,
                    5000, 0, 0);
  live.refresh();
  const views::Rows rows = live.table->rows(live.holders, {}, 2);
  REQUIRE(rows.rows.size() == 2);
  CHECK(rows.matching == 4);
  CHECK(rows.rows[1].own == 5000);
}

TEST_CASE("growth in words") {
  CHECK(views::growth_text(0).empty());
  CHECK(views::growth_text(1536) == "+1.5 KiB/s");
  CHECK(views::growth_text(-300) == "-300 B/s");
}

TEST_CASE("a file truncated while it is mapped reads as zeros") {
  const ScratchDirectory directory;
  const std::string path = directory.path() + "/cut";
  std::ofstream{path} << std::string(3 * 4096, 'x');
  const recording::MappedFile mapped = recording::map_file(path);
  REQUIRE(mapped.bytes != nullptr);
  CHECK(mapped.size == 3 * 4096);
  REQUIRE(truncate(path.c_str(), 4096) == 0);
  CHECK(mapped.bytes.get()[100] == std::byte{'x'});
  CHECK(mapped.bytes.get()[2 * 4096] == std::byte{0});
  CHECK(recording::map_file(directory.path()).bytes == nullptr);
  CHECK(recording::map_file("/nowhere").bytes == nullptr);
}
