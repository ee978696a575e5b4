#include "tools/service/track/tracking.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "common/system/files.h"
#include "tools/base/text.h"
#include "tools/formats/telemetry/event.h"
#include "tools/formats/telemetry/record_file.h"
#include "tools/processes/observe/live_line.h"
#include "tools/processes/observe/ticker.h"
#include "tools/service/track/tracker.h"

namespace oomrec::tools::service {

void track(processes::Observed& observed, const TrackingOptions& options) {
  std::optional<formats::RecordFile> file;
  if (options.format) file.emplace(options.output, *options.format, formats::event_columns());
  std::FILE* const page = file && file->is_stdout() ? stderr : stdout;
  processes::LiveLine line;
  const auto report = [&](const std::string& text) {
    line.clear();
    fmt::print(page, "{} {}\n", time_text(system::realtime_ns()), text);
    std::fflush(page);
  };
  TrackerParts parts{file ? &*file : nullptr, {}, {}, report};
  if (options.recorder) parts.recorder.emplace(*options.recorder);
  if (options.watchdog) parts.watchdog.emplace();
  Tracker tracker{observed, options.thresholds, options.rank, options.interval_s, std::move(parts)};

  processes::Ticker ticker{options.interval_s, options.duration_s, observed.pid()};
  bool is_running = false;
  do {
    is_running = tracker.sample();
    if (is_running) line.show(ticker.elapsed_s(), tracker.last());
  } while (is_running && ticker.next());
  line.clear();
  const std::string ending = is_running ? "" : fmt::format("it {}", observed.ending());
  tracker.stop(!is_running               ? ending
               : ticker.stop_requested() ? "stopped by a signal"
                                         : "the duration has elapsed");
  fmt::print(page, "{}{}", tracker.summary(), is_running ? "" : fmt::format("  {}\n", ending));
  if (file && !file->is_stdout())
    fmt::print(page, "  {} in {}\n", plural(file->records(), "event", "events"),
               printable(options.output));
}

}  // namespace oomrec::tools::service
