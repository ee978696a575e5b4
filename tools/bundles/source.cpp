#include "tools/bundles/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "common/bundle/bundle.h"
#include "tools/bundles/access.h"
#include "tools/bundles/bundles.h"
#include "tools/bundles/family.h"
#include "tools/bundles/orphans.h"
#include "tools/bundles/outcome.h"
#include "tools/bundles/snapshot_source.h"
#include "tools/error.h"
#include "tools/live/processes.h"
#include "tools/ranks/merged.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

namespace fs = std::filesystem;
using session::TableId;

std::uint32_t last_failure(const session::View& view) {
  session::Failure failure{};
  for (std::uint64_t i = view.count(TableId::failures); i-- > 1;) {
    const bool read = view.read(TableId::failures, i, failure);
    if (read && (failure.flags & session::kFailureProbe) == 0) return static_cast<std::uint32_t>(i);
  }
  return 0;
}

// Recordings that are in no bundle, or not in one that is here: of running processes, and of dead
// ones that wanted their bundles elsewhere.
std::string advice_without_bundle(const std::vector<Session>& sessions) {
  const auto dead = static_cast<std::uint64_t>(std::count_if(
      sessions.begin(), sessions.end(), [](const Session& session) { return !session.alive; }));
  const std::uint64_t alive = sessions.size() - dead;
  if (dead != 0)
    return fmt::format(
        "{} elsewhere: `oomrec ls --all` lists, `oomrec recover` makes bundles.",
        plural(dead, "dead process left a recording", "dead processes left recordings"));
  if (alive != 0)
    return fmt::format("{} recorded: `oomrec ls --all` lists, `oomrec dump PID` writes a bundle.",
                       plural(alive, "running process is", "running processes are"));
  return "A program that ends well leaves none: oomrec run --dump-at-exit -- PROGRAM; or name one.";
}

fs::path newest_bundle() {
  const std::vector<fs::path> directories = dump_directories();
  recover_orphans(directories);
  const std::vector<BundleSummary> bundles = bundles_in(directories);
  if (!bundles.empty()) return bundles.front().path;
  for (const fs::path& directory : directories) {
    refuse_unreadable(directory);
    for (const fs::path& closed : closed_bundles_in(directory)) refuse_unreadable(closed);
  }
  const std::string where = directories.empty() ? "./oom_dumps" : directories.front().string();
  throw Error{Exit::nothing_found, fmt::format("there is no bundle in {}", printable(where)),
              advice_without_bundle(sessions_of(directories))};
}

// By its first bytes: a directory, a recording, a snapshot. Not a program that may be running.
bool may_be_read(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error) || is_snapshot(path)) return true;
  std::uint64_t magic = 0;
  std::ifstream{path, std::ios::binary}.read(reinterpret_cast<char*>(&magic), sizeof magic);
  return magic == session::kMagic;
}

[[noreturn]] void refuse_directory(const fs::path& directory) {
  const std::string name = printable(directory.string());
  std::error_code error;
  if (fs::is_regular_file(directory / "diagnostic_summary.json", error))
    throw Error{Exit::bad_input,
                fmt::format("{} is what a `diagnose` has left, and holds no recording", name),
                fmt::format("diagnostic_summary.json in it says what was found; `oomrec analyze "
                            "{}/telemetry_timeline.json` reads its samples.",
                            name)};
  if (is_bundle(directory) && fs::is_regular_file(directory / "events.json", error))
    throw Error{Exit::bad_input,
                fmt::format("{} is a bundle without a {}, as GPU Memory Profiler writes them", name,
                            kRecordingName),
                fmt::format("`oomrec analyze {}/events.json` reads its events.", name)};
  throw Error{Exit::bad_input, fmt::format("{} holds no {}", name, kRecordingName),
              "Is it a bundle? `oomrec ls` lists those of a dump directory."};
}

// A name of what can be read comes before the number or the program of a recorded process.
fs::path named(const std::string& argument) {
  if (may_be_read(argument)) return argument;
  if (const auto pid = pid_in(argument)) return recorded_process(*pid).recording->path();
  if (argument.find('/') != std::string::npos) return argument;
  try {
    return find_live_process(argument).recording->path();
  } catch (const Error& nobody) {
    if (nobody.code() != Exit::nothing_found) throw;
    return argument;
  }
}

// A file of the bundle. Where it cannot be read, `source` says so, and what is `lost` with it.
Json own_file(Source& source, const char* name, std::string_view lost) {
  std::string problem;
  Json json = read_json(source.bundle / name, &problem);
  if (!problem.empty()) source.unread.push_back(fmt::format("{} {}: {}", name, problem, lost));
  return json;
}

void read_own_files(Source& source) {
  source.manifest = own_file(source, "manifest.json", "when the bundle was written is not known");
  source.metadata =
      own_file(source, "metadata.json", "verdict and outcome are judged by the recording alone");
  if (member(source.manifest, "merged") == Json(true))
    source.ranks = own_file(source, kJobName, "which ranks there are is not known");
}

}  // namespace

Source open_source(const std::string& argument, std::shared_ptr<const CacheDirectory> cache) {
  const fs::path path = argument.empty() ? newest_bundle() : named(argument);
  refuse_unreadable(path);
  std::error_code error;
  Source source;
  fs::path file = path;
  if (fs::is_directory(path, error)) {
    source.bundle = fs::absolute(path).lexically_normal();
    if (!source.bundle.has_filename()) source.bundle = source.bundle.parent_path();
    file = source.bundle / kRecordingName;
    if (!fs::exists(file, error) && holds_ranks(path))
      return merged_source(job_of({path.string()}, {}, cache), source.bundle);
    if (!fs::exists(file, error)) refuse_directory(path);
    refuse_unreadable(file);
    read_own_files(source);
  }
  if (is_snapshot(file)) return open_snapshot(file);
  source.recording = std::make_unique<Recording>(file);
  const session::View& view = source.recording->view();
  if (source.bundle.empty() && session::life_of(view) == session::Life::dead)
    source.ending =
        ending_of(view, with_word_of_parent({}, view.header(), {fs::absolute(path).parent_path()}));
  source.cache = std::move(cache);
  source.places = std::make_unique<Places>(
      *source.recording,
      source.bundle.empty() ? StoredSymbols{} : StoredSymbols::load(source.bundle / "symbols.json"),
      source.cache);
  return source;
}

bool Source::is_live() const {
  return bundle.empty() && session::life_of(recording->view()) == session::Life::alive;
}

Trigger Source::trigger() const {
  if (const auto stored = trigger_in(metadata)) return *stored;
  if (const auto stored = trigger_in(manifest)) return *stored;
  if (!imported.empty()) return failure() != 0 ? Trigger::allocation_failed : Trigger::request;
  if (recording->header().simulated != 0) return Trigger::simulated;
  return trigger_of(recording->view());
}

std::string Source::outcome() const {
  if (is_job()) return text_of(metadata, "outcome").value_or("unknown");
  if (!imported.empty()) return std::string{name_of(OutcomeKind::unknown)};
  if (ending) return ending->word();
  const std::string word = text_of(metadata, "outcome").value_or(std::string{kRunning});
  return bundle.empty() ? word : outcome_now(word, recording->header(), bundle, manifest);
}

std::uint32_t Source::failure() const {
  if (metadata.contains("request") && member(metadata, "request").is_null()) return 0;
  const auto stored = number_of(metadata, "failure");
  const bool there = stored && *stored < recording->view().count(TableId::failures);
  return there ? static_cast<std::uint32_t>(*stored) : last_failure(recording->view());
}

std::string Source::reason() const { return text_of(metadata, "context").value_or(""); }

std::uint64_t Source::repeats() const {
  if (const auto stored = number_of(member(metadata, "request"), "repeats")) return *stored;
  const std::uint32_t counted = bundle::repeats_of(recording->view(), failure());
  return counted != bundle::kRepeatsUnknown ? counted : 0;
}

bundle::Verdict Source::verdict() const {
  if (is_job()) return merged_verdict(metadata);
  const session::Death* const death = ending && ending->killed ? &ending->death : nullptr;
  return bundle::verdict_of(recording->view(), trigger(), failure(), reason(), outcome(), death);
}

}  // namespace oomrec::tools
