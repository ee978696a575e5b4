#include "tools/views/top/top_view.h"

#include <fmt/format.h>

#include <algorithm>

#include "common/system/files.h"
#include "tools/base/text.h"
#include "tools/recording/stack_text/stack_text.h"
#include "tools/views/screen/picture.h"
#include "tools/views/top/figures.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kRowsAhead = 200;  // sorted beyond those on the screen

}  // namespace

// A key, its name and its action.
struct TopView::Binding {
  Key key;
  std::string_view name, help;
  void (*action)(TopView&);
};

const std::vector<TopView::Binding>& TopView::bindings() {
  const auto on = [](char32_t character) { return static_cast<Key>(character); };
  static const std::vector<Binding> all = {
      {on(U'1'), "1", "by stack", [](TopView& view) { view.choice_.by = By::stack; }},
      {on(U'2'), "2", "by function", [](TopView& view) { view.choice_.by = By::function; }},
      {on(U'3'), "3", "by file", [](TopView& view) { view.choice_.by = By::file; }},
      {Key::tab, "Tab", "the next of these three",
       [](TopView& view) {
         view.choice_.by = static_cast<By>((static_cast<unsigned>(view.choice_.by) + 1) % 3);
       }},
      {on(U'o'), "o", "sort by own bytes", [](TopView& view) { view.choice_.sort = SortBy::own; }},
      {on(U't'), "t", "sort by total bytes, callees included",
       [](TopView& view) { view.choice_.sort = SortBy::total; }},
      {on(U'c'), "c", "sort by the number of blocks",
       [](TopView& view) { view.choice_.sort = SortBy::count; }},
      {on(U'g'), "g", "sort by growth, over the last seconds",
       [](TopView& view) { view.choice_.sort = SortBy::growth; }},
      {on(U'/'), "/", "only rows with a frame that contains a text; Esc: all rows",
       [](TopView& view) { view.search_.emplace(); }},
      {Key::escape, "Esc", "end the search", [](TopView& view) { view.choice_.search.clear(); }},
      {on(U's'), "s", "choose a space of memory", [](TopView& view) { view.choose_space(); }},
      {on(U'r'), "r", "choose threads by name", [](TopView& view) { view.choose_group(); }},
      {on(U'p'), "p", "choose a process", [](TopView& view) { view.choose_process(); }},
      {on(U'f'), "f", "frames: both, Python's only, native only",
       [](TopView& view) {
         view.choice_.frames =
             static_cast<recording::Frames>((static_cast<unsigned>(view.choice_.frames) + 1) % 3);
       }},
      {Key::enter, "Enter", "the whole stack of a row", [](TopView& view) { view.show_stack(); }},
      {on(U' '), "Space", "pause the figures, or resume",
       [](TopView& view) { view.paused_ = !view.paused_; }},
      {on(U'?'), "?", "this page", [](TopView& view) { view.show_help(); }},
      {on(U'h'), "h", "this page", [](TopView& view) { view.show_help(); }},
  };
  return all;
}

TopView::TopView(recording::LiveProcess process,
                 std::shared_ptr<const recording::CacheDirectory> cache, const Choice& choice,
                 std::string further_keys)
    : cache_(std::move(cache)), choice_(choice), further_keys_(std::move(further_keys)) {
  show(std::move(process));
}

void TopView::show(recording::LiveProcess process) {
  table_.reset();
  session_ = std::make_unique<recording::LiveSession>(std::move(process), cache_);
  table_ = std::make_unique<Table>(session_->stacks(), session_->locations());
  holders_ = LiveHolders{};
  holders_.refresh(session_->recording(), system::monotonic_ns());
  choice_.group.reset();
  ending_.clear();
  selected_ = scroll_ = 0;
}

void TopView::refresh() {
  if (session_->replaced()) {
    auto next = recording::live_process(session_->process().pid);
    if (next && next->start_ticks == session_->process().start_ticks) show(std::move(*next));
  }
  if (paused_ || session_->ended()) return;
  session_->sample();
  holders_.refresh(session_->recording(), system::monotonic_ns());
  if (session_->ended()) ending_ = session_->ending();
}

Scene TopView::scene(std::size_t most_rows, Charset charset) {
  rows_ = table_->rows(holders_, choice_, most_rows);
  return {*session_, holders_, *table_,  choice_, rows_,
          selected_, scroll_,  footer(), paused_, charset};
}

std::string TopView::footer() const {
  if (search_) return fmt::format(" search: {}_", printable(choice_.search));
  if (session_->ended()) return fmt::format(" the process {}   q quit", ending_);
  return fmt::format(
      " q quit  ? keys  Tab {}  o t c g sort  / search  s space  r threads  Space {}{}",
      kByNames[(static_cast<unsigned>(choice_.by) + 1) % 3], paused_ ? "resume" : "pause",
      further_keys_);
}

Picture TopView::picture(Size size, Charset charset) {
  size_ = size;
  if (chooser_) return chooser_->picture(size);
  const std::size_t page = table_rows(*session_, size);
  const std::size_t wanted = std::max(selected_, scroll_) + page + kRowsAhead;
  rows_ = table_->rows(holders_, choice_, wanted);
  selected_ = std::min(selected_, rows_.rows.empty() ? 0 : rows_.rows.size() - 1);
  scroll_ = scrolled_to(selected_, page, scroll_);
  return picture_of({*session_, holders_, *table_, choice_, rows_, selected_, scroll_, footer(),
                     paused_, charset},
                    size);
}

// The rows are filtered while the user types.
void TopView::search(Key key) {
  const Prompt::Answer answer = search_->key(key);
  choice_.search = answer == Prompt::Answer::cancelled ? std::string{} : search_->text();
  if (answer != Prompt::Answer::editing) search_.reset();
  selected_ = 0;
}

bool TopView::key(Key key) {
  if (search_) {
    search(key);
    return true;
  }
  if (key == Key::interrupt) return false;
  if (chooser_) {
    const Chooser::Answer answer = chooser_->key(key, size_);
    const std::size_t chosen = chooser_->chosen();
    if (answer != Chooser::Answer::choosing) chooser_.reset();
    if (answer == Chooser::Answer::chosen) on_chosen_(chosen);
    return true;
  }
  if (character(key) == U'q') return false;
  if (move_by(key, rows_.rows.size(), table_rows(*session_, size_), selected_)) return true;
  const auto binding = std::ranges::find(bindings(), key, &Binding::key);
  if (binding != bindings().end()) binding->action(*this);
  return true;
}

void TopView::open_chooser(std::string title, std::vector<Line> lines, std::size_t chosen,
                           std::function<void(std::size_t)> on_chosen) {
  chooser_.emplace(std::move(title), std::move(lines), chosen);
  on_chosen_ = std::move(on_chosen);
}

void TopView::choose_space() {
  std::vector<Line> lines{Line{" all that add up"}};
  std::vector<std::optional<Space>> spaces{std::nullopt};
  std::size_t chosen = 0;
  for (std::size_t i = 0; i < kSpaceCount; ++i) {
    const auto space = static_cast<Space>(i);
    if (!holders_.has(space)) continue;
    if (choice_.space == space) chosen = spaces.size();
    spaces.emplace_back(space);
    lines.emplace_back(fmt::format(" {}", name_of(space)));
  }
  open_chooser("which space of memory", std::move(lines), chosen,
               [this, spaces](std::size_t at) { choice_.space = spaces[at]; });
}

void TopView::choose_group() {
  std::vector<Line> lines{Line{" all threads"}};
  for (std::size_t i = 1; i < holders_.groups().size(); ++i)
    lines.emplace_back(fmt::format(" {}", printable(holders_.groups()[i])));
  open_chooser("which threads, by their name without digits", std::move(lines),
               choice_.group.value_or(0), [this](std::size_t at) {
                 choice_.group =
                     at == 0 ? std::nullopt : std::optional{static_cast<std::uint16_t>(at)};
               });
}

void TopView::choose_process() {
  const std::vector<recording::LiveProcess> processes = recording::live_processes();
  std::vector<Line> lines;
  std::size_t chosen = 0;
  for (const recording::LiveProcess& process : processes) {
    if (process.pid == session_->process().pid) chosen = lines.size();
    lines.emplace_back(fmt::format(" {:>8}  {:>10}  {}", process.pid,
                                   size_text(process.recording->held_bytes()), process.title()));
  }
  open_chooser("which process: your recorded processes", std::move(lines), chosen,
               [this, processes](std::size_t at) { show(processes[at]); });
}

void TopView::show_stack() {
  if (selected_ >= rows_.rows.size()) return;
  const Row& row = rows_.rows[selected_];
  const recording::Locations& locations = session_->locations();
  std::vector<Line> lines;
  for (const recording::LocationId location : table_->paths().locations(row.path)) {
    const bool own = recording::relevance_of(locations[location], locations) ==
                     recording::Relevance::own_python_line;
    lines.emplace_back(" " + recording::location_text(locations[location], locations),
                       own ? Colour::cyan : Colour::plain);
  }
  open_chooser(fmt::format("{}  {}", size_text(row.own), row_text(row, choice_.by, *table_)),
               std::move(lines), 0, [](std::size_t) {});
}

void TopView::show_help() {
  std::vector<Line> lines;
  for (const Binding& binding : bindings())
    lines.emplace_back(fmt::format("  {:<7} {}", binding.name, binding.help));
  lines.emplace_back("  arrows  move; also Page Up, Page Down, Home, End");
  lines.emplace_back("  q       quit; the program keeps running");
  open_chooser("keys", std::move(lines), 0, [](std::size_t) {});
}

}  // namespace oomrec::tools::views
