// `oomrec monitor`: samples of memory, of the machine or of a process, as Memory Snapshot rows.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "tools/base/arguments.h"
#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/formats/telemetry/record_file.h"
#include "tools/formats/telemetry/records.h"
#include "tools/processes/observe/live_line.h"
#include "tools/processes/observe/observed.h"
#include "tools/processes/observe/ticker.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec monitor                                 the machine's first GPU, else its memory\n"
    "  oomrec monitor --device cpu --duration 60 --output memory.csv\n"
    "  oomrec monitor --format json 4711 | jq '.[-1].memory_used_mb'\n"
    "  oomrec analyze memory.csv                      what the rows say\n"
    "\n"
    "Ctrl-C ends it before its time; what was seen is kept and summed up.\n";

// What was seen of it, in bytes.
class Summary {
 public:
  void add(const processes::Look& look) {
    const auto used = static_cast<double>(look.used_bytes);
    if (samples_ == 0) first_ = lowest_ = highest_ = used;
    lowest_ = std::min(lowest_, used);
    highest_ = std::max(highest_, used);
    last_ = used;
    sum_ += used;
    total_ = look.total_bytes;
    ++samples_;
  }

  std::size_t samples() const { return samples_; }

  std::string text(const std::string& title, double seconds) const {
    std::string page =
        fmt::format("{}: {} in {:.1f} s\n", title, plural(samples_, "sample", "samples"), seconds);
    if (samples_ == 0) return page;
    const double change = last_ - first_;
    page += line("lowest", lowest_) + line("mean", sum_ / static_cast<double>(samples_)) +
            line("highest", highest_) + line("last", last_);
    return page + fmt::format("  {:<8} {:>10}\n", "change",
                              (change < 0 ? "-" : "+") + bytes_text(std::abs(change)));
  }

 private:
  static std::string bytes_text(double bytes) {
    return size_text(static_cast<std::uint64_t>(bytes));
  }
  std::string line(std::string_view name, double bytes) const {
    const std::string share =
        total_ && *total_ != 0
            ? fmt::format("  {} of {}", percent_text(bytes / static_cast<double>(*total_)),
                          size_text(*total_))
            : "";
    return fmt::format("  {:<8} {:>10}{}\n", name, bytes_text(bytes), share);
  }

  std::size_t samples_ = 0;
  double first_ = 0, lowest_ = 0, highest_ = 0, last_ = 0, sum_ = 0;
  std::optional<std::uint64_t> total_;
};

formats::MemorySnapshot snapshot_of(const processes::Look& look, int device_id) {
  return {static_cast<double>(look.realtime_ns) / 1e9,
          static_cast<double>(look.used_bytes) / formats::kMegabyte,
          static_cast<double>(look.total_bytes.value_or(0)) / formats::kMegabyte, device_id};
}

}  // namespace

int monitor_command(const Words& words) {
  Arguments arguments{
      "monitor", "[OPTIONS] [PID|PROGRAM]",
      "Samples memory from outside: of the machine, on its first GPU or, without one, on the host; "
      "or of a process, by number or, where it is recorded, by name. A process's rows are what is "
      "resident of it, on a GPU what all processes have there.",
      kExamples};
  std::string process;
  std::string device;
  std::string output;
  std::string format = "csv";
  double duration_s = 10;
  double interval_s = 0.1;
  arguments.positional("PID|PROGRAM", process, "a process; without it the machine");
  arguments.option("--device", "DEVICE", device, "a GPU by number (0, cuda:0), or the host (cpu)",
                   {"cpu", "0"});
  arguments.option("--duration", "SECONDS", duration_s, "how long (10)");
  arguments.option("--interval", "SECONDS", interval_s, "time between two samples (0.1)");
  arguments.option("--output", "FILE", output, "write rows there; -: stdout");
  arguments.choice("--format", "FORMAT", format, {"csv", "json"},
                   "of the rows (csv); given without --output, they go to stdout");
  if (!arguments.parse(words)) return code(Exit::shown);

  const processes::DeviceChoice choice = processes::DeviceChoice::of(device);
  const std::unique_ptr<processes::Observed> observed =
      process.empty() ? processes::observe_machine(choice)
                      : processes::observe_process(process, choice);
  std::optional<formats::RecordFile> rows;
  if (!output.empty() || arguments.given("--format"))
    rows.emplace(output, format, formats::snapshot_columns());

  Summary summary;
  processes::LiveLine line;
  processes::Ticker ticker{interval_s, duration_s, observed->pid()};
  processes::Look look;
  bool there = false;
  do {
    there = observed->look(look);
    if (!there) break;
    summary.add(look);
    if (rows) rows->add(formats::snapshot_json(snapshot_of(look, observed->device_id())));
    line.show(ticker.elapsed_s(), look);
  } while (ticker.next());
  line.clear();

  std::string page = summary.text(observed->title(), ticker.elapsed_s());
  if (!there) page += fmt::format("  it {}\n", observed->ending());
  if (rows && !rows->is_stdout())
    page += fmt::format("  {} in {}\n", plural(rows->records(), "row", "rows"), printable(output));
  const bool rows_on_stdout = rows && rows->is_stdout();
  rows.reset();
  fmt::print(rows_on_stdout ? stderr : stdout, "{}", page);
  return code(summary.samples() != 0 ? Exit::shown : Exit::nothing_found);
}

}  // namespace oomrec::tools::commands
