// `oomrec monitor`: samples the memory of the machine or of a process as Memory Snapshot rows.
#include <fmt/format.h>
#include <unistd.h>

#include <optional>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/formats/telemetry/records.h"
#include "tools/processes/observe/live_line.h"
#include "tools/processes/observe/observed.h"
#include "tools/processes/observe/ticker.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kMonitorExamples =
    "  oomrec monitor                                 the machine's first GPU, else its memory\n"
    "  oomrec monitor --device cpu --duration 60 --output memory.csv\n"
    "  oomrec monitor --format json 4711 | jq '.[-1].memory_used_mb'\n"
    "  oomrec analyze memory.csv                      analyze the rows\n"
    "\n"
    "Ctrl-C stops it early; the samples so far are kept and summed up.\n";

formats::MemorySnapshot snapshot_of(const processes::MemorySample& sample, int device_id) {
  return {static_cast<double>(sample.realtime_ns) / 1e9,
          static_cast<double>(sample.used_bytes) / formats::kMegabyte,
          static_cast<double>(sample.total_bytes.value_or(0)) / formats::kMegabyte, device_id};
}

}  // namespace

int monitor_command(const Words& words) {
  Arguments arguments{
      "monitor", "[OPTIONS] [PID|PROGRAM]",
      "Samples memory from outside: of the machine (its first GPU, or the host if it has none), or "
      "of a process, by pid or, if it is recorded, by program. A process's rows are its resident "
      "memory; on a GPU, what all processes use there.",
      kMonitorExamples};
  std::string process;
  std::string device;
  std::string output;
  std::string format = "csv";
  double duration_s = 10;
  double interval_s = 0.1;
  arguments.positional("PID|PROGRAM", process, "a process (default: the machine)");
  arguments.option("--device", "DEVICE", device, "a GPU by number (0, cuda:0), or the host (cpu)",
                   {"cpu", "0"});
  arguments.option("--duration", "SECONDS", duration_s, "how long (10)");
  arguments.option("--interval", "SECONDS", interval_s, "time between two samples (0.1)");
  arguments.option("--output", "FILE", output, "write the rows to FILE; -: stdout");
  arguments.choice("--format", "FORMAT", format, {"csv", "json"},
                   "format of the rows (csv); without --output they go to stdout");
  if (!arguments.parse(words)) return code(Exit::shown);

  const processes::DeviceChoice choice = processes::DeviceChoice::of(device);
  const std::unique_ptr<processes::Observed> observed =
      process.empty() ? processes::observe_machine(choice)
                      : processes::observe_process(process, choice);
  std::optional<formats::RecordFile> rows;
  if (!output.empty() || arguments.given("--format"))
    rows.emplace(output, format, formats::snapshot_columns());

  processes::UsageSummary summary;
  processes::LiveLine line;
  processes::Ticker ticker{interval_s, duration_s, observed->pid()};
  processes::MemorySample sample;
  bool alive = false;
  do {
    alive = observed->sample(sample);
    if (!alive) break;
    summary.add(sample);
    if (rows) rows->add(formats::snapshot_json(snapshot_of(sample, observed->device_id())));
    line.show(ticker.elapsed_s(), sample);
  } while (ticker.next());
  line.clear();

  std::string page = summary.text(observed->title(), ticker.elapsed_s());
  if (!alive) page += fmt::format("  it {}\n", observed->ending());
  if (rows && !rows->is_stdout())
    page += fmt::format("  {} in {}\n", plural(rows->records(), "row", "rows"), printable(output));
  const bool rows_on_stdout = rows && rows->is_stdout();
  rows.reset();
  fmt::print(rows_on_stdout ? stderr : stdout, "{}", page);
  return code(summary.samples() != 0 ? Exit::shown : Exit::nothing_found);
}

}  // namespace oomrec::tools::commands
