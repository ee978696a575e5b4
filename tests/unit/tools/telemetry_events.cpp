// What the command reads in files of telemetry: telemetry_events FILE… prints a line of JSON for
// each.
//
// Driven by tests/integration/test_telemetry_corpus.py, which asks the Python package the same.
#include <fmt/format.h>

#include "tools/formats/telemetry/load.h"

using namespace oomrec::tools;

namespace {

Json read(const char* file) {
  try {
    const formats::LoadedTelemetry loaded = formats::load_telemetry(file);
    Json events = Json::array();
    for (const formats::TelemetryEvent& event : loaded.events) events.push_back(event_json(event));
    return {{"events", events}, {"notes", loaded.notes}};
  } catch (const formats::UnreadTelemetry& problem) {
    return {{"reason", problem.reason()}, {"message", problem.what()}};
  }
}

}  // namespace

int main(int count, char** words) {
  for (int i = 1; i < count; ++i) fmt::print("{}\n", json_text(read(words[i])));
}
