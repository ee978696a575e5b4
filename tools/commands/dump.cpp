// `oomrec dump PID`: writes a bundle of a running process from its session file, without disturbing
// the process.
#include <fmt/format.h>

#include "tools/base/arguments.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/store/writing.h"
#include "tools/commands/commands.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kDumpExamples =
    "  oomrec dump 4711\n"
    "  oomrec dump --reason \"before the second epoch\" 4711\n"
    "  oomrec dump --to /tmp/dumps server\n";

recording::LiveProcess process_of(const std::string& word) {
  if (!word.empty()) return bundles::find_live_process(word);
  throw Error{Exit::bad_input, "no process was given",
              "Give the pid of a running process: oomrec dump 4711"};
}

}  // namespace

int dump_command(const Words& words) {
  Arguments arguments{"dump", "[OPTIONS] PID|PROGRAM",
                      "Writes a bundle of a running, recorded process. It reads the recording from "
                      "outside, without a signal to the process or a pause of it.",
                      kDumpExamples};
  std::string word;
  std::string reason;
  std::string directory;
  bool json = false;
  arguments.positional("PID|PROGRAM", word, "the process, by pid or program");
  arguments.option("--reason", "TEXT", reason, "a note for the bundle: why it was requested");
  arguments.option("--to", "DIR", directory,
                   "where the bundle goes (the process's own dump directory)");
  arguments.flag("--json", json, "print {\"schema_version\", \"bundle\"}");
  if (!arguments.parse(words)) return code(Exit::shown);

  const recording::LiveProcess process = process_of(word);
  recording::Recording recording{process.recording->path()};
  recording.enter_look(process.pid);
  if (directory.empty()) directory = recording::bundle_directory(process.pid, recording);
  directory = std::filesystem::absolute(directory).lexically_normal().string();
  bundle::Cause cause;
  cause.trigger = Trigger::request;
  cause.reason = reason;
  const bundles::WriteResult written = bundles::write_bundle(recording, cause, directory);
  if (written.bundle.empty()) {
    throw Error{Exit::bad_input, written.problem,
                "Give another directory: oomrec dump --to DIR PID"};
  }
  if (json)
    print_json({{"schema_version", 1}, {"bundle", written.bundle.string()}});
  else
    fmt::print("{}\n", printable(written.bundle.string()));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
