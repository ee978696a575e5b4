// `oomrec timeline`: memory over time, drawn in the terminal.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "tools/bundles/opening/open.h"
#include "tools/bundles/opening/options.h"
#include "tools/commands/commands.h"
#include "tools/recording/live/session.h"
#include "tools/recording/reading/timeline.h"
#include "tools/views/plot/timeline.h"
#include "tools/views/screen/picture.h"
#include "tools/views/screen/screen.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kTimelineExamples =
    "  oomrec timeline                   the newest bundle\n"
    "  oomrec timeline 4711              a running process, so far\n"
    "  oomrec timeline --rank 3 job      one rank of a job\n"
    "  oomrec timeline --ascii > memory.txt\n"
    "  oomrec timeline --json | jq '.moments[-1].rss_bytes'\n";

constexpr unsigned kRows = 16;
constexpr std::size_t kLeastColumns = 40;

struct RecordedTimeline {
  std::shared_ptr<const recording::Recording> recording;
  recording::Timeline timeline;
};

// Up to now for a running process, up to its end for a bundle or a recording.
RecordedTimeline read_timeline(const bundles::ReadOptions& options) {
  const std::optional<pid_t> pid = recording::parse_pid(options.bundle);
  if (pid && options.rank.empty() && !std::filesystem::exists(options.bundle)) {
    const recording::LiveSession session{bundles::find_live_process(options.bundle), nullptr};
    return {session.process().recording, session.timeline()};
  }
  std::shared_ptr<const recording::Recording> recording = options.open().recording;
  recording::Timeline timeline = recording::timeline_of(*recording);
  return {std::move(recording), std::move(timeline)};
}

}  // namespace

int timeline_command(const Words& words) {
  Arguments arguments{"timeline", "[OPTIONS] [BUNDLE]",
                      "Draws memory over time: live bytes, RSS and the limits of the process, what "
                      "it held on each GPU, and when memory was refused.",
                      kTimelineExamples};
  bundles::ReadOptions options;
  bool ascii = false;
  unsigned rows = kRows;
  options.add_to(arguments);
  arguments.option("--height", "ROWS", rows, fmt::format("rows of a chart ({})", kRows));
  arguments.flag("--ascii", ascii, "draw in ASCII, without Braille");
  if (!arguments.parse(words)) return code(Exit::shown);

  const auto [owner, timeline] = read_timeline(options);
  const recording::Recording& recording = *owner;
  if (options.json) {
    print_json(views::timeline_json(timeline, recording));
    return code(Exit::shown);
  }
  const views::Charset charset = ascii ? views::Charset::ascii : views::terminal_charset();
  const bool terminal = isatty(STDOUT_FILENO) == 1;
  const views::Size size{
      terminal ? std::max(kLeastColumns, views::terminal_size().columns) : kColumns,
      std::clamp<std::size_t>(rows, 3, 200)};
  const views::Picture picture = views::timeline_picture(timeline, recording, size, charset);
  fmt::print("{}", views::as_text(picture, Terminal{STDOUT_FILENO}, size.columns, charset));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
