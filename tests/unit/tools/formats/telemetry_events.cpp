// Prints what the command reads from telemetry files, a line of JSON for each: telemetry_events
// FILE…
//
// tests/integration/test_telemetry_corpus.py runs it, and compares the result with the Python
// package's.
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
