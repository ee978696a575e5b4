// A screen, and rows that are renewed.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "tests/unit/tools/recording_image.h"
#include "tools/base/json.h"
#include "tools/bundles/signature/signature.h"
#include "tools/views/export/row_history.h"
#include "tools/views/live_run/text_pane.h"
#include "tools/views/plot/chart.h"
#include "tools/views/screen/chooser.h"
#include "tools/views/screen/picture.h"
#include "tools/views/tree/tree_view.h"

using namespace oomrec::tools;
using namespace oomrec;
using oomrec::tests::RecordingImage;

// --- Terminal views without a terminal: text by columns, charts, lists, the pane with a program's
// output, the interactive tree

namespace {

constexpr std::uint64_t kSecond = 1'000'000'000;

views::Key letter(char32_t character) { return static_cast<views::Key>(character); }

std::vector<std::string> texts(const views::Picture& picture) {
  std::vector<std::string> lines;
  for (const views::Line& line : picture) lines.push_back(line.text());
  return lines;
}

std::vector<std::string> shown(views::TextPane& pane, std::string_view bytes,
                               std::size_t most = 10) {
  pane.print(bytes);
  return texts(pane.lines(most));
}

bool has(const views::Picture& picture, std::string_view words) {
  for (const views::Line& line : picture)
    if (line.text().find(words) != std::string::npos) return true;
  return false;
}

std::string without_axis(views::Line line) {
  line.spans.erase(line.spans.begin());
  return line.text();
}

void type(views::TreeView& view, std::u32string_view text) {
  for (const char32_t character : text) view.key(letter(character));
  view.key(views::Key::enter);
}

using Texts = std::vector<std::string>;

// From a recording, callers first.
struct Tree {
  explicit Tree(const RecordingImage& image) : recording(image.path()) {}

  recording::Recording recording;
  recording::Locations locations{recording, {}};
  recording::Stacks stacks{recording, locations};
  recording::TreeNode root =
      recording::call_tree(recording::merged(recording.holders(), stacks, recording::At::end),
                           stacks, locations, {.top_down = true});
  views::TreeView view{"a tree", root, locations};
};

}  // namespace

TEST_CASE("text is measured and cut in terminal columns") {
  REQUIRE(setlocale(LC_CTYPE, "C.UTF-8") != nullptr);
  CHECK(views::columns_of("heap") == 4);
  CHECK(views::columns_of("日本") == 4);
  CHECK(views::cut("日本語", 5) == "日本…");
  CHECK(views::cut("日本語", 4) == "日…");
  CHECK(views::cut("heap", 4) == "heap");
  CHECK(views::cut("heap", 0).empty());
  CHECK(views::fitted("日本語", 6) == "日本語");
  CHECK(views::fitted("ab", 4) == "ab  ");
  CHECK(views::in_ascii("a ← b … 日") == "a < b ~ ?");
}

TEST_CASE("a picture as text has no colours and no trailing blanks") {
  views::Picture picture{views::Line{"one"}, views::Line{}, views::Line{"a title", Colour::red}};
  picture[0].blanks_to(6).add("two  ", Colour::yellow);
  CHECK(views::as_text(picture, Terminal{}, 80, views::Charset::utf8) == "one   two\n\na title\n");
  CHECK(views::as_text(picture, Terminal{}, 5, views::Charset::utf8) == "one …\n\na ti…\n");
  CHECK(views::as_text(picture, Terminal{}, 5, views::Charset::ascii) == "one ~\n\na ti~\n");
}

TEST_CASE("a list keeps its cursor on the screen") {
  std::vector<views::Line> lines;
  for (int i = 0; i < 50; ++i) lines.emplace_back("line " + std::to_string(i));
  views::Chooser chooser{"which", lines};
  const views::Size size{40, 12};  // ten lines
  for (int i = 0; i < 15; ++i)
    CHECK(chooser.key(views::Key::down, size) == views::Chooser::Answer::choosing);
  CHECK(has(chooser.picture(size), "line 15"));
  CHECK_FALSE(has(chooser.picture(size), "line 5"));
  chooser.key(views::Key::end, size);
  CHECK(chooser.chosen() == 49);
  chooser.key(views::Key::page_up, size);
  CHECK(chooser.chosen() == 39);
  CHECK(chooser.key(views::Key::enter, size) == views::Chooser::Answer::chosen);
  CHECK(chooser.key(views::Key::escape, size) == views::Chooser::Answer::cancelled);
  CHECK(chooser.picture({40, 3}).size() == 3);
}

TEST_CASE("a prompt accepts and deletes characters of any width") {
  views::Prompt prompt;
  for (const char32_t typed : {U'a', U'é', U'日'}) prompt.key(letter(typed));
  CHECK(prompt.text() == "aé日");
  prompt.key(views::Key::backspace);
  CHECK(prompt.text() == "aé");
  prompt.key(views::Key::up);
  CHECK(prompt.text() == "aé");
  CHECK(prompt.key(views::Key::enter) == views::Prompt::Answer::accepted);
  CHECK(views::contains_ignoring_case("make_Batch", "BATCH"));
  CHECK_FALSE(views::contains_ignoring_case("make", "makes"));
}

TEST_CASE("a canvas draws dots in Unicode and in ASCII") {
  views::Canvas braille{2, 1, views::Charset::utf8};
  braille.dot(0, 0, Colour::plain);
  braille.dot(3, 3, Colour::plain);
  braille.dot(4, 0, Colour::plain);  // outside
  CHECK(braille.lines()[0].text() == "⡀⠈");
  views::Canvas ascii{3, 1, views::Charset::ascii};
  ascii.dot(0, 0, Colour::plain);
  ascii.dot(1, 1, Colour::plain);
  ascii.stroke(2, 0, 1, Colour::plain);
  CHECK(ascii.lines()[0].text() == ".':");
}

TEST_CASE("a chart shows a rise, a peak between two columns, and a near limit") {
  views::Chart chart;
  chart.end_ns = 1000 * kSecond;
  views::Curve live{"live", Colour::plain, false, {{0, 0}, {500 * kSecond, 0}}};
  SUBCASE("the later half of a step is high") {
    live.points.emplace_back(501 * kSecond, 800);
    live.points.emplace_back(1000 * kSecond, 800);
    chart.curves = {live};
    std::vector<views::Line> lines = views::lines_of(chart, {52, 4}, views::Charset::ascii);
    REQUIRE(lines.size() == 5);  // and the axis of time
    const std::string top = without_axis(lines[0]);
    const std::string bottom = without_axis(lines[3]);
    CHECK(top.substr(0, 18) == std::string(18, ' '));
    CHECK(top.substr(22).find(' ') == std::string::npos);
    CHECK(bottom.substr(0, 18).find(' ') == std::string::npos);
    CHECK(bottom.substr(22) == std::string(18, ' '));
    CHECK(lines[4].text().find("16:40") != std::string::npos);
  }
  SUBCASE("a peak of a single instant is drawn") {
    live.points.emplace_back(501 * kSecond, 800);
    live.points.emplace_back(501 * kSecond + 1, 0);
    live.points.emplace_back(1000 * kSecond, 0);
    chart.curves = {live};
    const std::string top = without_axis(views::lines_of(chart, {52, 4}, views::Charset::ascii)[0]);
    CHECK(top.find_first_not_of(' ') != std::string::npos);
  }
  SUBCASE("a near limit is drawn, a distant one is only in the legend") {
    live.points.emplace_back(600 * kSecond, 800);
    chart.curves = {live};
    chart.limits = {{"--limit", 1000}, {"RAM", 100'000}};
    const Texts lines = texts(views::lines_of(chart, {52, 4}, views::Charset::ascii));
    CHECK(lines[0].find("--limit") != std::string::npos);
    for (const std::string& line : lines) CHECK(line.find("RAM") == std::string::npos);
    CHECK(views::legend_of(chart).text().find("RAM 97.7 KiB") != std::string::npos);
  }
  CHECK(views::clock_text(3723 * kSecond) == "1:02:03");
  CHECK(views::axis_text(kSecond / 4, kSecond) == "0.25 s");
  CHECK(views::axis_text(65 * kSecond, 70 * kSecond) == "1:05");
}

TEST_CASE("the pane shows the result of a progress bar, and no control sequences") {
  views::TextPane pane;
  CHECK(shown(pane, "one\r\ntwo\r\n") == Texts{"one", "two"});
  CHECK(shown(pane, " 10 %\r 20 %\r") == Texts{"one", "two", " 20 %"});
  CHECK(shown(pane, "\x1b[Kdone\b\b\b\bDONE\r\n") == Texts{"one", "two", "DONE"});
  CHECK(shown(pane, "\x1b[2AT\x1b[31mW\x1b[0m") == Texts{"one", "TWo", "DONE"});
  CHECK(shown(pane, "\x1b]0;title\a\x1bPq\x1b\\\x1b[?25l\x1b[6n") == Texts{"one", "TWo", "DONE"});
  CHECK(shown(pane, "\x1b[2J!", 1) == Texts{"!"});
}

TEST_CASE("the pane joins characters that arrive in pieces, and replaces invalid bytes") {
  views::TextPane pane;
  pane.print("\xe6\x97");
  CHECK(shown(pane, "\xa5|") == Texts{"日|"});
  CHECK(shown(pane, "\r\xc3(") == Texts{"\xef\xbf\xbd("});
  CHECK(shown(pane, "\r\n\xc2\x9b[0m\xff") ==
        Texts{"\xef\xbf\xbd(", "\xef\xbf\xbd[0m\xef\xbf\xbd"});
}

TEST_CASE("the pane is bounded for any output") {
  views::TextPane pane;
  for (int i = 0; i < 5000; ++i) pane.print("line\n\x1b[9999C\x1b[9999B");
  pane.print(std::string(100'000, 'x'));
  pane.print("\x1b[" + std::string(100'000, '1') + "m");
  const views::Picture lines = pane.lines(100'000);
  CHECK(lines.size() <= 500);
  for (const views::Line& line : lines) CHECK(line.text().size() <= 1000);
}

TEST_CASE("an only child is not indented further") {
  RecordingImage image;
  const auto at = [&](const char* name, std::uint32_t line) {
    return image.python("/p/deep.py", name, line);
  };
  image.holder(image.stack({at("a", 1), at("b", 2), at("c", 3), at("d", 4), at("e", 5)}),
               Space::heap, 3000, 0, 3000);
  Tree tree{image};
  views::TreeView& view = tree.view;
  view.key(letter(U'*'));
  const views::Picture picture = view.picture({80, 10});
  REQUIRE(has(picture, "/p/deep.py:5 e"));
  CHECK(picture[1].text().find("/p/") == picture[4].text().find("/p/"));
  view.key(views::Key::down);
  CHECK(view.picture({80, 10})[2].reversed);
  view.key(views::Key::left);  // closes it
  view.key(views::Key::left);  // selects the caller
  CHECK(view.picture({80, 10})[1].reversed);
}

TEST_CASE("branches of a tree open, close and can be searched") {
  RecordingImage image;
  const std::uint64_t main = image.python("/home/me/train.py", "main", 1);
  const std::uint64_t load = image.python("/home/me/train.py", "load", 2);
  const std::uint64_t parse = image.python("/home/me/train.py", "parse", 3);
  const std::uint64_t keep = image.python("/home/me/train.py", "keep", 4);
  image.holder(image.stack({main, load, parse}), Space::heap, 3000, 0, 3000);
  image.holder(image.stack({main, load}), Space::heap, 500, 0, 500);
  image.holder(image.stack({main, keep}), Space::heap, 1000, 0, 1000);
  Tree tree{image};
  views::TreeView& view = tree.view;
  const views::Size size{100, 10};

  CHECK(has(view.picture(size), "▸ /home/me/train.py:1 main"));
  CHECK_FALSE(has(view.picture(size), "load"));
  SUBCASE("one level at a time") {
    view.key(views::Key::right);
    CHECK(has(view.picture(size), "▸ /home/me/train.py:2 load"));
    CHECK_FALSE(has(view.picture(size), "parse"));
    view.key(views::Key::down);
    view.key(views::Key::left);  // selects the caller
    view.key(views::Key::left);
    CHECK_FALSE(has(view.picture(size), "load"));
  }
  SUBCASE("all below") {
    view.key(letter(U'*'));
    CHECK(has(view.picture(size), "parse"));
    CHECK(has(view.picture(size), "keep"));
  }
  SUBCASE("searched, from top to bottom and around") {
    type(view, U"/PARSE");
    views::Picture picture = view.picture(size);
    REQUIRE(has(picture, "parse"));
    CHECK(picture[3].reversed);
    view.key(letter(U'n'));
    CHECK(view.picture(size)[3].reversed);
    type(view, U"/z");
    CHECK(has(view.picture(size), "\"z\" is not in the tree"));
  }
  CHECK(view.picture({30, 3}).size() == 3);
  CHECK_FALSE(view.key(letter(U'q')));
}

// --- Rows of earlier rules of signatures get today's

namespace {

std::string frame(const std::string& kind, const std::string& function, const std::string& file,
                  bool own) {
  return fmt::format(
      R"({{"kind":"{}","function":"{}","file":"{}","line":7,"module":null,"build_id":null,"offset":null,"own":{}}})",
      kind, function, file, own);
}

// A row of rules that knew a cause by the script's name.
std::string old_row(const std::string& more = {}) {
  const std::string frames = frame("python", "Cache.remember", "shop/cache.py", true) + "," +
                             frame("python", "handle", "shop/api.py", true);
  return R"({"schema_version":1,"kind":"death","signature":"api.py cache","signature_version":0,)"
         R"("cause":"leak","limit_bytes":1000,"request":null,"service":"shop",)"
         R"("column_of_later_releases":3,)" +
         more + R"("holders":[{"space":"heap","device":null,"bytes":900,"resident_bytes":null,)" +
         R"("count":3,"estimated":false,"sig":"?","frames":[)" + frames + "]}]}";
}

}  // namespace

TEST_CASE("an old row gets today's signature and keeps its own as the alias") {
  const Json row = parse_json(views::renewed_row(old_row()));
  CHECK(text_of(row, "signature") == "cache.py:remember <- api.py:handle");
  CHECK(text_of(row, "signature_coarse") == "cache.py:remember");
  CHECK(text_of(row, "signature_alias") == "api.py cache");
  CHECK(number_of(row, "signature_version") == bundles::kSignatureVersion);
  CHECK(text_of(row, "title") == "cache.py:remember ← api.py:handle");
  CHECK(text_of(row, "cause") == "leak");
  CHECK(number_of(row, "column_of_later_releases") == 3);
  CHECK(text_of(*member(row, "holders").begin(), "sig") == "cache.py:remember <- api.py:handle");
}

TEST_CASE("the alias is the first name that it ever had") {
  const Json row = parse_json(views::renewed_row(old_row(R"("signature_alias":"oldest",)")));
  CHECK(text_of(row, "signature_alias") == "oldest");
}

TEST_CASE("a giant request is a cause by today's rules, too") {
  const std::string request = R"("request":{"size":2000000,"frames":[)" +
                              frame("native", "read_all", "src/read.cpp", true) + "]},";
  std::string line = old_row();
  line.replace(line.find("\"request\":null,"), 15, request);
  const Json row = parse_json(views::renewed_row(line));
  CHECK(text_of(row, "signature") == "read_all");
  CHECK(text_of(row, "cause") == "giant_request");
}

TEST_CASE("other lines stay as they are") {
  const std::string today =
      fmt::format(R"({{"kind":"death","signature_version":{}}})", bundles::kSignatureVersion);
  for (const std::string& line :
       {today, std::string{R"({"kind":"life","signature_version":0})"}, std::string{"not JSON"},
        std::string{}, std::string{R"({"signature_version":"x"})"}, std::string{"[1,2]"},
        std::string{R"({"kind":"death","signature_version":99})"}})
    CHECK(views::renewed_row(line) == line);
}
