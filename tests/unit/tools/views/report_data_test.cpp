// A report's data compared with its recording: every array, and the texts.
#include <doctest/doctest.h>

#include <algorithm>
#include <set>

#include "tests/unit/tools/readable_image.h"
#include "tests/unit/tools/views/inflated.h"
#include "tools/views/report/container.h"
#include "tools/views/report/data.h"
#include "tools/views/report/named_stacks.h"
#include "tools/views/report/report.h"
#include "tools/views/report/rows.h"

using namespace oomrec;
using namespace oomrec::tools;
using oomrec::tests::Inflated;
using oomrec::tests::ReadableImage;
using session::TableId;

namespace {

Inflated report_of(const ReadableImage& image) {
  return Inflated{views::report_data(image.source()).bytes};
}

using Names = std::vector<std::string>;

// The only row with this innermost function.
std::size_t row_of(const Inflated& report, const std::string& innermost) {
  std::vector<std::size_t> found;
  for (std::size_t row = 0; row < report.array("row_node").size(); ++row) {
    const Names functions = report.functions(row);
    if (!functions.empty() && functions.back() == innermost) found.push_back(row);
  }
  REQUIRE_MESSAGE(found.size() == 1, innermost << ": " << found.size());
  return found[0];
}

}  // namespace

TEST_CASE("base64 follows RFC 4648") {
  CHECK(tools::views::base64("") == "");
  CHECK(tools::views::base64("f") == "Zg==");
  CHECK(tools::views::base64("fo") == "Zm8=");
  CHECK(tools::views::base64("foo") == "Zm9v");
  CHECK(tools::views::base64("foob") == "Zm9vYg==");
  CHECK(tools::views::base64("\xff\xfe\xfd") == "//79");
}

TEST_CASE("a container returns its numbers for any length of the JSON before them") {
  for (std::size_t length = 0; length < 20; ++length) {
    tools::views::Container container;
    std::vector<std::uint8_t> bytes(length, 7);
    container.add("a", bytes);
    container.add("b", std::vector<std::uint16_t>{65535, 0, 3});
    container.add("c", std::vector<std::uint32_t>{4294967295U});
    container.add("d", std::vector<double>{-1, 0.5, 9007199254740993.0});
    const Inflated read{container.deflated({{"text", std::string(length, 'x')}})};
    CHECK(read.array("a") == std::vector<double>(length, 7));
    CHECK(read.array("b") == std::vector<double>{65535, 0, 3});
    CHECK(read.array("c") == std::vector<double>{4294967295.0});
    CHECK(read.array("d") == std::vector<double>{-1, 0.5, 9007199254740993.0});
    CHECK(read.json()["text"] == std::string(length, 'x'));
  }
}

TEST_CASE("each holder is a row with its stack and its figures") {
  ReadableImage image;
  const auto outer = image.python("/home/me/train.py", "outer", 10);
  const auto inner = image.python("/home/me/lib.py", "inner", 20);
  const std::uint32_t index = image.holder(image.stack({outer, inner}), Space::map, 101, 3, 1);
  auto& holder = image.add<session::Holder>(TableId::holders);
  holder.node = image.stack({outer});
  holder.live_bytes = 11, holder.live_count = 2;
  holder.peak_bytes = 700, holder.peak_count = 70;
  holder.total_bytes = 9000, holder.total_count = 90;
  holder.temporary_count = 40;
  REQUIRE(index != 0);

  const Inflated report = report_of(image);

  const std::size_t row = row_of(report, "inner");
  CHECK(report.functions(row) == Names{"outer", "inner"});
  CHECK(report.array("row_space")[row] == static_cast<double>(Space::map));
  CHECK(report.array("row_live_bytes")[row] == 101);
  CHECK(report.array("row_live_count")[row] == 3);
  CHECK(report.array("row_estimated")[row] == 1);
  CHECK(report.array("row_device")[row] == 0);
  CHECK(report.array("row_oldest_ms")[row] == -1);
  const std::size_t other = row_of(report, "outer");
  CHECK(report.array("row_live_bytes")[other] == 11);
  CHECK(report.array("row_live_count")[other] == 2);
  CHECK(report.array("row_peak_bytes")[other] == 700);
  CHECK(report.array("row_peak_count")[other] == 70);
  CHECK(report.array("row_total_bytes")[other] == 9000);
  CHECK(report.array("row_total_count")[other] == 90);
  CHECK(report.array("row_temporary_count")[other] == 40);
  CHECK(report.array("row_estimated")[other] == 0);
  CHECK(report.index("row_space", other) == static_cast<std::size_t>(Space::heap));
  CHECK(report.json()["spaces"][1]["name"] == "map");
}

TEST_CASE("nodes are a trie: parents come first, and each path exists once") {
  ReadableImage image;
  const auto a = image.python("/p/a.py", "a", 1), b = image.python("/p/b.py", "b", 2);
  image.holder(image.stack({a, b}), Space::heap, 10, 1);
  image.holder(image.stack({a, b, a}), Space::heap, 20, 1);
  image.holder(image.stack({a, b}), Space::map, 30, 1);

  const Inflated report = report_of(image);

  const auto parents = report.array("node_parent"), locations = report.array("node_place");
  REQUIRE(parents.size() == locations.size());
  std::set<std::pair<double, double>> ways;
  for (std::size_t node = 1; node < parents.size(); ++node) {
    CHECK(parents[node] < static_cast<double>(node));
    CHECK(ways.emplace(parents[node], locations[node]).second);
  }
  CHECK(parents.size() == 1 + 3 + 3);  // of a b a, and of the training stack
}

TEST_CASE("holders that differ only in the recorder's nodes share a row") {
  ReadableImage image;
  const auto line = image.python("/p/a.py", "line", 1);
  image.holder(image.stack({line}), Space::heap, 100, 1);
  image.holder(image.stack({line}), Space::heap, 23, 4);

  const Inflated report = report_of(image);

  const std::size_t row = row_of(report, "line");
  CHECK(report.array("row_live_bytes")[row] == 123);
  CHECK(report.array("row_live_count")[row] == 5);
}

TEST_CASE("thread groups and labels separate rows, but are not nodes") {
  ReadableImage image;
  const auto work = image.python("/p/a.py", "work", 1);
  const auto pool = image.group("pool"), main = image.group("main");
  const auto epoch = image.label("epoch 3"), step = image.label("step 7");
  image.holder(image.node(image.node(0, pool), work), Space::heap, 1, 1);
  image.holder(image.node(image.node(0, main), work), Space::heap, 2, 1);
  image.holder(image.node(image.node(image.node(image.node(0, main), epoch), step), work),
               Space::heap, 4, 1);

  const Inflated report = report_of(image);

  std::set<std::tuple<std::string, std::string, double>> seen;
  std::set<double> nodes;
  for (std::size_t row = 0; row < report.array("row_node").size(); ++row) {
    if (report.functions(row) != Names{"work"}) continue;
    nodes.insert(report.array("row_node")[row]);
    seen.emplace(report.json()["groups"][report.index("row_group", row)].get<std::string>(),
                 report.json()["labels"][report.index("row_label", row)].get<std::string>(),
                 report.array("row_live_bytes")[row]);
  }
  CHECK(nodes.size() == 1);
  CHECK(seen == decltype(seen){{"pool", "", 1}, {"main", "", 2}, {"main", "epoch 3 / step 7", 4}});
}

TEST_CASE("a location has the kind of its code") {
  ReadableImage image;
  const auto native = [&](const char* path, std::uint64_t offset) {
    return session::native_frame(image.module(path), offset);
  };
  const auto import_line = image.python("<frozen importlib._bootstrap>", "_load", 3);
  const auto package = image.python("/v/lib/python3.11/site-packages/n/n.py", "ones", 4);
  const auto own = image.python("/home/me/train.py", "step", 5);
  image.holder(image.stack({native("/opt/p/bin/python3.11", 0x10), import_line, package, own,
                            native("/lib/x86_64-linux-gnu/libc.so.6", 0x20),
                            session::special_frame(session::SpecialFrame::truncated, 0)}),
               Space::heap, 1, 1);

  const Inflated report = report_of(image);

  const std::size_t row = row_of(report, "[frames further out were not recorded]");
  std::vector<unsigned> kinds;
  for (std::size_t node = report.index("row_node", row); node != 0;
       node = report.index("node_parent", node))
    kinds.insert(kinds.begin(), static_cast<unsigned>(
                                    report.index("place_kind", report.index("node_place", node))));
  CHECK(kinds == std::vector<unsigned>{tools::views::kInterpreter, 1 | tools::views::kImport, 1,
                                       1 | tools::views::kOwn, tools::views::kAllocator, 2});
  const Names functions = report.functions(row);
  CHECK(functions[0] == "python3.11+0x10");
  CHECK(functions[4] == "libc.so.6+0x20");
}

TEST_CASE("a holder on several devices has a row for each") {
  ReadableImage image;
  image.open<session::Device>(TableId::devices);
  image.open<session::DeviceBlock>(TableId::device_blocks);
  for (const int ordinal : {0, 1}) image.add<session::Device>(TableId::devices).ordinal = ordinal;
  const auto copy = image.python("/p/a.py", "copy", 1), here = image.python("/p/a.py", "here", 2);
  const std::uint32_t both = image.holder(image.stack({copy}), Space::cuda, 700, 3);
  const std::uint32_t second = image.holder(image.stack({here}), Space::cuda, 50, 1);
  const auto block = [&](std::uint32_t holder, std::uint32_t device, std::uint64_t bytes) {
    auto& row = image.add<session::DeviceBlock>(TableId::device_blocks);
    row.key = bytes;
    row.what = static_cast<std::uint8_t>(session::DeviceKey::address);
    row.kind = static_cast<std::uint8_t>(session::DeviceKind::block);
    row.bytes = bytes, row.holder = holder, row.device = device;
  };
  block(both, 1, 100), block(both, 1, 200), block(both, 2, 400), block(second, 2, 50);

  const Inflated report = report_of(image);

  std::set<std::tuple<std::string, double, double, double>> seen;
  for (std::size_t row = 0; row < report.array("row_node").size(); ++row) {
    if (report.array("row_space")[row] == static_cast<double>(Space::cuda))
      seen.emplace(report.functions(row)[0], report.array("row_device")[row],
                   report.array("row_live_bytes")[row], report.array("row_total_bytes")[row]);
  }
  CHECK(seen ==
        decltype(seen){
            {"copy", 0, 0, 700}, {"copy", 1, 300, 0}, {"copy", 2, 400, 0}, {"here", 2, 50, 50}});
}

TEST_CASE("moments, checkpoints, marks and failures have wall-clock times") {
  ReadableImage image;
  image.open<session::Checkpoint>(TableId::checkpoints);
  image.open<session::CheckpointRow>(TableId::checkpoint_rows);
  image.open<session::Mark>(TableId::marks);
  const std::uint64_t start_ns = image.header().start_monotonic_ns;
  const double start_ms = static_cast<double>(image.header().start_realtime_ns) / 1e6;
  const auto line = image.python("/p/a.py", "line", 1);
  const std::uint32_t first = image.holder(image.stack({line}), Space::heap, 60, 1);
  const std::uint32_t same = image.holder(image.stack({line}), Space::heap, 40, 1);
  auto& point = image.add<session::Point>(TableId::points);
  point.time_ns = start_ns + 1'000'000'000, point.rss_bytes = 5000, point.live_bytes[0] = 4000;
  std::uint32_t row = 0;
  image.add<session::CheckpointRow>(TableId::checkpoint_rows, &row) = {first, 1000, 30};
  image.add<session::CheckpointRow>(TableId::checkpoint_rows) = {same, 1000, 12};
  auto& checkpoint = image.add<session::Checkpoint>(TableId::checkpoints);
  checkpoint.time_ns = start_ns + 1'000'000'000, checkpoint.live_bytes[0] = 99;
  checkpoint.first_row = row, checkpoint.rows = 2;
  image.add<session::Mark>(TableId::marks) = {start_ns + 500'000'000, image.string("warm\x1b[1m"),
                                              0};

  const Inflated report = report_of(image);

  CHECK(report.array("t_time")[0] == start_ms + 1000);
  CHECK(report.array("t_rss")[0] == 5000);
  CHECK(report.array("t_live_0")[0] == 4000);
  CHECK(report.has("t_live_1") == false);  // a space that was never used
  REQUIRE(report.array("c_time").size() == 2);
  CHECK(report.array("c_time")[0] == start_ms + 1000);
  CHECK(report.array("c_total_0")[0] == 99);
  CHECK(report.array("c_first")[0] == 0);
  CHECK(report.array("c_first")[1] == 1);  // both holders share a row
  CHECK(report.index("c_row", 0) == row_of(report, "line"));
  CHECK(report.array("c_bytes")[0] == 42);
  CHECK(report.array("c_first")[2] == static_cast<double>(report.array("c_row").size()));
  double at_end = 0;  // at the end: everything, exact
  for (std::size_t i = 1; i < report.array("c_bytes").size(); ++i)
    at_end += report.array("c_bytes")[i];
  CHECK(at_end == static_cast<double>((std::uint64_t{640} << 20) + 100));
  CHECK(report.json()["marks"] ==
        tools::Json::array({{{"time_ms", start_ms + 500}, {"text", "warm?[1m"}}}));
  const tools::Json& refusal = report.json()["refusals"][0];
  CHECK(refusal["time_ms"] == start_ms + 2000);
  CHECK(refusal["bytes"] == std::uint64_t{412} << 20);
  CHECK(refusal["api"] == "malloc");
  const std::size_t leaf = report.index("node_place", refusal["stack"].get<std::size_t>());
  CHECK(report.text("place_function", leaf) == "libc.so.6+0x9876");
}

TEST_CASE("a name longer than any real one is cut") {
  tools::views::TextTable texts;
  const std::uint32_t longest = texts.id(std::string(60'000, 'n'));
  CHECK(longest == texts.id(std::string(50'000, 'n')));
  CHECK(texts.id("n") == longest + 1);
  CHECK(texts.texts()[longest].size() < 4200);
  CHECK(texts.id("") == 0);
}

TEST_CASE("any name is made printable and cut") {
  ReadableImage image;
  const std::string script = "</script><script>alert(1)</script>";
  const auto hostile = image.python("/p/\xff\xfe.py", script + "\x1b[31m", 1);
  const auto zeros = image.python("/p/a.py", std::string_view{"a\0b", 3}, 2);
  image.holder(image.stack({hostile, zeros}), Space::heap, 1, 1);
  image.header().host[0] = '\x1b';

  const tools::bundles::Source source = image.source();
  const std::string data = views::report_data(source).bytes;
  const Inflated report{data};

  bool there = false;
  for (const tools::Json& text : report.json()["strings"]) {
    const auto& value = text.text();
    there = there || value == script + "?[31m";
    CHECK(std::none_of(value.begin(), value.end(),
                       [](char byte) { return static_cast<unsigned char>(byte) < ' '; }));
  }
  CHECK(there);
  const std::string page = tools::views::report_page("<b>\"&", {"flame", "a & b", ""}, data);
  CHECK(page.find("&lt;b&gt;&quot;&amp;") != page.npos);
  CHECK(page.find("<b>\"&") == page.npos);
  CHECK(page.find("alert(1)") == page.npos);
  CHECK(page.find("data-view=\"flame\" data-label=\"a &amp; b\"") != page.npos);
  CHECK(page.find(tools::views::base64(data)) != page.npos);
}
