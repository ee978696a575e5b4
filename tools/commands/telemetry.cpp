// `oomrec __telemetry`: the reader of telemetry files, for the Python package.
#include <fmt/format.h>

#include <iostream>
#include <iterator>

#include "tools/base/arguments.h"
#include "tools/base/text.h"
#include "tools/commands/commands.h"
#include "tools/formats/telemetry/fields.h"
#include "tools/formats/telemetry/load.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kTelemetryExamples =
    "  oomrec __telemetry events.json\n"
    "  echo '[{\"timestamp\": 1, \"memory_allocated\": 2}]' | oomrec __telemetry -\n";

formats::LoadedTelemetry read(const std::string& file, const formats::TelemetryOptions& options) {
  formats::LoadedTelemetry loaded =
      formats::telemetry_in(file == "-" ? std::string{std::istreambuf_iterator<char>{std::cin}, {}}
                                        : formats::telemetry_text(file),
                            options);
  if (!loaded.calls.empty())
    throw formats::TelemetryProblem{"no_events", "there are no telemetry events: function calls"};
  return loaded;
}

}  // namespace

int telemetry_command(const Words& words) {
  Arguments arguments{"__telemetry", "[OPTIONS] FILE",
                      "Reads a telemetry file for the Python package. Prints a line of JSON with "
                      "its `notes`, then each event as one of version 2, in the order of the file; "
                      "or only a line with a `problem` and its `reason`, in one word.",
                      kTelemetryExamples};
  std::string file, events_key;
  bool no_version_1 = false;
  unsigned most_events = 0;
  arguments.positional("FILE", file, "a file of telemetry; -: stdin");
  arguments.option("--events-key", "KEY", events_key, "the list in a JSON object (events)");
  arguments.flag("--no-version-1", no_version_1, "reject records without schema_version");
  arguments.option("--most-events", "N", most_events,
                   "reject a file with more events (any number)");
  if (!arguments.parse(words)) return code(Exit::shown);

  formats::TelemetryOptions options{{}, !no_version_1};
  if (arguments.given("--events-key")) options.events_key = events_key;
  try {
    const formats::LoadedTelemetry loaded = read(file, options);
    if (arguments.given("--most-events") && loaded.events.size() > most_events)
      throw formats::TelemetryProblem{
          "size", fmt::format("it has {} events, too many for its size", loaded.events.size())};
    fmt::print("{}\n", json_text({{"notes", loaded.notes}}));
    for (const formats::TelemetryEvent& event : loaded.events)
      fmt::print("{}\n", json_text(formats::event_json(event)));
    return code(Exit::shown);
  } catch (const formats::TelemetryProblem& problem) {
    fmt::print("{}\n",
               json_text({{"problem", printable(problem.what())}, {"reason", problem.reason()}}));
    return code(Exit::bad_input);
  }
}

}  // namespace oomrec::tools::commands
