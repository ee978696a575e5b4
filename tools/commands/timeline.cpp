// `oomrec timeline`: memory over time, drawn in the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/recording/live/session.h"
#include "tools/recording/reading/devices.h"
#include "tools/views/plot/timeline_chart.h"
#include "tools/views/plot/timeline_json.h"
#include "tools/views/screen/columns.h"
#include "tools/views/screen/screen.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec timeline                   the newest bundle\n"
    "  oomrec timeline 4711              a recorded process that runs, so far\n"
    "  oomrec timeline --ascii > memory.txt\n"
    "  oomrec timeline --json | jq '.moments[-1].rss_bytes'\n";

constexpr std::size_t kMostEvents = 20;  // lines of each kind
constexpr unsigned kRows = 16;
constexpr std::size_t kLeastColumns = 40;

class Page {
 public:
  Page(const recording::Timeline& timeline, const recording::Recording& recording, views::Size size,
       bool utf8)
      : timeline_(timeline), recording_(recording), size_(size), utf8_(utf8) {}

  views::Picture picture() {
    add_heading("memory of the process");
    add(views::host_chart(timeline_, recording_));
    for (const std::uint32_t device : views::devices_in(timeline_)) {
      picture_.emplace_back();
      add_heading(recording::device_label(recording_, device));
      add(views::device_chart(timeline_, recording_, device));
    }
    add_refusals();
    add_marks();
    return std::move(picture_);
  }

 private:
  void add_heading(const std::string& text) { picture_.emplace_back(text, Colour::bold); }

  void add(const views::Chart& chart) {
    for (views::Line& line : views::lines_of(chart, size_, utf8_))
      picture_.push_back(std::move(line));
    picture_.push_back(views::legend_of(chart));
  }

  std::string when(std::uint64_t time_ns) const {
    const std::uint64_t start = recording_.header().start_monotonic_ns;
    const std::uint64_t range_ns = recording_.end_ns() - start;
    return fmt::format("{:>9}  {}",
                       views::axis_text(time_ns > start ? time_ns - start : 0, range_ns),
                       time_text(recording_.realtime_of(time_ns)));
  }

  // Lines of the last events of a kind.
  template <class Event, class Describe>
  void add_events(const std::vector<Event>& events, std::string_view sign, std::string_view heading,
                  Colour colour, Describe describe) {
    if (events.empty()) return;
    picture_.emplace_back();
    add_heading(fmt::format("{} {}", sign, heading));
    const std::size_t first = events.size() > kMostEvents ? events.size() - kMostEvents : 0;
    if (first != 0) picture_.emplace_back(fmt::format("  … {} before", first), Colour::dim);
    for (std::size_t i = first; i < events.size(); ++i) {
      views::Line line{fmt::format("  {}  ", when(events[i].time_ns)), Colour::dim};
      picture_.push_back(line.add(describe(events[i]), colour));
    }
  }

  void add_refusals() {
    add_events(timeline_.refusals, views::kRefusalSign, "refused", Colour::red,
               [this](const recording::RefusalMoment& refusal) {
                 session::Failure failure{};
                 recording_.view().read(session::TableId::failures, refusal.failure, failure);
                 return fmt::format("{} of {}", name_of(static_cast<Api>(failure.api)),
                                    size_text(failure.bytes));
               });
  }

  void add_marks() {
    add_events(timeline_.marks, views::kMarkSign, "marks", Colour::plain,
               [](const recording::TimeMark& mark) { return printable(mark.text); });
    if (timeline_.dropped_marks != 0) {
      picture_.emplace_back(fmt::format("  and {}", plural(timeline_.dropped_marks,
                                                           "more mark that could not be kept",
                                                           "more marks that could not be kept")),
                            Colour::dim);
    }
  }

  const recording::Timeline& timeline_;
  const recording::Recording& recording_;
  const views::Size size_;
  const bool utf8_;
  views::Picture picture_;
};

struct Recorded {
  std::shared_ptr<const recording::Recording> recording;
  recording::Timeline timeline;
};

// Of a process that runs up to now; of a bundle or a recording up to its end.
Recorded recorded(const std::string& named) {
  const std::optional<pid_t> pid = recording::pid_in(named);
  if (pid && !std::filesystem::exists(named)) {
    const recording::LiveSession session{recording::recorded_process(*pid), nullptr};
    return {session.process().recording, session.timeline()};
  }
  std::shared_ptr<const recording::Recording> recording = bundles::open_source(named).recording;
  recording::Timeline timeline = recording::timeline_of(*recording);
  return {std::move(recording), std::move(timeline)};
}

}  // namespace

int timeline_command(const Words& words) {
  Arguments arguments{"timeline", "[OPTIONS] [BUNDLE]",
                      "Memory over time: live bytes, RSS and the limits of the process, what it "
                      "held on each GPU, and when memory was refused.",
                      kExamples};
  std::string named;
  bool json = false;
  bool ascii = false;
  unsigned rows = kRows;
  arguments.positional("BUNDLE", named, bundles::kReadable);
  arguments.flag("--json", json, "print JSON (docs/commands/timeline.md)");
  arguments.option("--height", "ROWS", rows, fmt::format("rows of a chart ({})", kRows));
  arguments.flag("--ascii", ascii, "no braille: as where the character set is not UTF-8");
  if (!arguments.parse(words)) return code(Exit::shown);

  const auto [read, timeline] = recorded(named);
  const recording::Recording& recording = *read;
  if (json) {
    print_json(views::timeline_json(timeline, recording));
    return code(Exit::shown);
  }
  const bool utf8 = !ascii && views::terminal_speaks_utf8();
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const views::Size size{
      terminal ? std::max(kLeastColumns, views::terminal_size().columns) : kColumns,
      std::clamp<std::size_t>(rows, 3, 200)};
  const views::Picture picture = Page{timeline, recording, size, utf8}.picture();
  fmt::print("{}", views::as_text(picture, Terminal{STDOUT_FILENO}, size.columns, utf8));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
