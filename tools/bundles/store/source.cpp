#include "tools/bundles/store/source.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>

#include "common/bundle/bundle.h"
#include "common/limits/health.h"
#include "common/residency/rows.h"
#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/bundles/store/process_tree.h"
#include "tools/bundles/store/trigger.h"
#include "tools/formats/pytorch/pickle_reader.h"
#include "tools/formats/pytorch/snapshot.h"
#include "tools/formats/pytorch/stack_nodes.h"
#include "tools/recording/live/processes.h"
#include "tools/recording/reading/image.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;
using session::TableId;

std::uint32_t last_failure(const session::View& view) {
  constexpr std::uint8_t kSecondary = session::kFailureProbe | session::kFailureAftershock;
  session::Failure failure{};
  for (std::uint64_t i = view.count(TableId::failures); i-- > 1;) {
    const bool read = view.read(TableId::failures, i, failure);
    if (read && (failure.flags & kSecondary) == 0) return static_cast<std::uint32_t>(i);
  }
  return 0;
}

// Whether the path is a directory, a recording or a snapshot, by its first bytes. A running program
// may have the same name as another file.
bool is_openable(const fs::path& path) {
  std::error_code error;
  if (fs::is_directory(path, error) || is_snapshot(ForeignPath::named(path))) return true;
  return recording::is_session_file(path);
}

[[noreturn]] void throw_no_recording(const fs::path& directory) {
  const std::string name = printable(directory.string());
  std::error_code error;
  if (fs::is_regular_file(directory / "diagnostic_summary.json", error))
    throw Error{Exit::bad_input,
                fmt::format("{} was written by `oomrec diagnose`, and contains no recording", name),
                fmt::format("Its diagnostic_summary.json has the findings; `oomrec analyze "
                            "{}/telemetry_timeline.json` reads its samples.",
                            name)};
  if (is_bundle(directory) && fs::is_regular_file(directory / "processes.json", error))
    throw Error{Exit::bad_input,
                fmt::format("{} has no {}: it is incomplete", name, kRecordingName),
                "Copy the whole directory again. Its metadata.json has the verdict."};
  if (is_bundle(directory) && fs::is_regular_file(directory / "events.json", error))
    throw Error{Exit::bad_input,
                fmt::format("{} is a bundle without a {}, as GPU Memory Profiler writes them", name,
                            kRecordingName),
                fmt::format("`oomrec analyze {}/events.json` reads its events.", name)};
  throw Error{Exit::bad_input, fmt::format("{} contains no {}", name, kRecordingName),
              "Is it a bundle? `oomrec ls` lists those of a dump directory."};
}

// A readable path takes precedence over the pid or program of a recorded process.
struct Resolved {
  fs::path path;
  pid_t pid = 0;  // of a running process, in our pid namespace; 0: of none
};
Resolved resolved(const recording::LiveProcess& process) {
  return {process.recording->path(), process.pid};
}
Resolved resolve(const std::string& argument) {
  if (is_openable(argument)) return {argument};
  if (const auto pid = recording::parse_pid(argument))
    return resolved(recording::require_live_process(*pid));
  if (argument.find('/') != std::string::npos) return {argument};
  try {
    return resolved(recording::find_live_process(argument));
  } catch (const Error& not_found) {
    if (not_found.code() != Exit::nothing_found) throw;
    return {argument};
  }
}

// Reads a file of the bundle. If that fails, adds to `read_problems` why, and what is `missing`
// now.
template <class File>
void read_bundle_file(Source& source, File& file, std::string_view missing) {
  std::string problem;
  file = read_file<File>(source.bundle, &problem);
  if (!problem.empty())
    source.read_problems.push_back(
        fmt::format("{}.json {}: {}", facts::Section<File>::key, problem, missing));
}

void read_bundle_files(Source& source) {
  read_bundle_file(source, source.manifest, "the time of writing is unknown");
  read_bundle_file(source, source.metadata, "verdict and outcome come from the recording alone");
  if (source.manifest.is_merged) {
    std::string problem;
    source.ranks = read_json(source.bundle, kJobName, &problem);
    if (!problem.empty())
      source.read_problems.push_back(
          fmt::format("{} {}: the ranks are unknown", kJobName, problem));
  }
  // The others are read where they are needed, or never.
  for (const char* name : {"events.json", "environment.json", "symbols.json", "processes.json",
                           "objects.json", "gpu_processes.json", "telemetry.json", kSnapshotName}) {
    const ForeignFile file{ForeignPath::in(source.bundle, name)};
    if (!file.problem().empty() && file.error() != ENOENT)
      source.read_problems.push_back(fmt::format("{} {}: it is left out", name, file.problem()));
  }
}

// What the process had in memory and in swap when it was killed, by the kernel, else by the last
// reading; 0: unknown. Of a cgroup that was full at that moment, it is taken to have had the rest.
// Pages of files, of which the kernel takes back as many as it can before it kills, are as at the
// latest look.
std::uint64_t resident_at_kill(const recording::Recording& recording,
                               const verdict::Verdict& verdict) {
  const session::Header& header = recording.header();
  const session::Health& health = header.health;
  const session::CgroupAccount& account = header.account;
  if (account.is_own_at_kill()) {
    constexpr auto kFiles = static_cast<std::size_t>(session::ResidentKind::files);
    const std::uint64_t files =
        recording.has_residency() ? recording.residency().kind_bytes[kFiles] : 0;
    return account.own_anonymous_bytes + account.own_shared_bytes + files + health.swap_bytes;
  }
  const std::uint64_t of_process = std::max<std::uint64_t>(
      {header.account.own_bytes(), header.end_levels.resident_bytes, health.rss_bytes});
  const std::uint64_t used = health.cgroup_used_bytes, limit = health.cgroup_limit_bytes;
  const bool is_full = verdict.code == VerdictCode::cgroup_oom_kill && used < limit;
  return std::max(of_process, health.rss_bytes + (is_full ? limit - used : 0)) + health.swap_bytes;
}

// More than so much it cannot have had; 0: unknown. A reading before the end says nothing of that.
std::uint64_t most_resident_at_kill(const recording::Recording& recording,
                                    const verdict::Verdict& verdict) {
  const session::Header& header = recording.header();
  const bool is_of_this_kill =
      verdict.code == VerdictCode::cgroup_oom_kill || verdict.code == VerdictCode::system_oom_kill;
  if (is_of_this_kill && header.account.is_own_at_kill())
    return resident_at_kill(recording, verdict);
  const std::uint64_t limit = limit::usage_of_killing_limit(header.health).limit_bytes;
  const bool is_full = verdict.code == VerdictCode::cgroup_oom_kill && limit != 0;
  return is_full ? limit + header.health.swap_bytes : 0;
}

// A kill for resident memory, and a living process, are explained by what is resident.
void set_weight(Source& source, pid_t pid) {
  recording::Recording& recording = *source.recording;
  if (source.is_job()) return;
  if (source.is_live()) {
    if (pid == 0 && recording.header().pid_namespace == system::pid_namespace())
      pid = recording.header().pid;
    source.pid = pid;
    if (pid != 0) recording.look_at_pages(pid);
    return;
  }
  if (source.trigger() == Trigger::killed) recording.set_killed();
  const verdict::Verdict verdict = source.verdict();
  const std::uint64_t most = most_resident_at_kill(recording, verdict);
  // Without a look only these figures tell what was resident.
  if (!recording.has_residency() && recording.header().account.own_bytes() == 0 && most == 0)
    return;
  // As the process itself at that time.
  if (source.trigger() == Trigger::request && recording.has_residency())
    return recording.set_weight(recording.weight_by_limits());
  if (!residency::is_about_resident_memory(source.trigger(), verdict.limit.kind)) return;
  if (source.trigger() == Trigger::killed)
    recording.note_resident_later(resident_at_kill(recording, verdict), most);
  recording.set_weight(recording::Weight::resident);
}

}  // namespace

Source open_recorded(const std::string& name,
                     std::shared_ptr<const recording::CacheDirectory> cache) {
  const auto [path, pid] = resolve(name);
  require_readable(path);
  std::error_code error;
  Source source;
  ForeignPath file = ForeignPath::named(path);
  if (fs::is_directory(path, error)) {
    source.bundle = absolute_directory(path);
    file = recording_in(source.bundle);
    const fs::file_status status = fs::symlink_status(file.path(), error);
    if (!fs::exists(status)) throw_no_recording(path);
    if (!fs::is_symlink(status)) require_readable(file.path());
    read_bundle_files(source);
  }
  if (is_snapshot(file)) return open_snapshot(file);
  source.recording = std::make_unique<recording::Recording>(file);
  const session::View& view = source.recording->view();
  if (source.bundle.empty() && session::life_of(view) == session::Life::dead)
    source.ending = deaths::ending_of(
        view, with_wait_status_from_parent({}, view.header(), {fs::absolute(path).parent_path()}));
  source.cache = std::move(cache);
  source.locations = std::make_unique<recording::Locations>(
      *source.recording,
      source.bundle.empty() ? recording::StoredSymbols{}
                            : recording::StoredSymbols::load(source.bundle),
      source.cache);
  set_weight(source, pid);
  return source;
}

bool Source::is_live() const {
  return bundle.empty() && session::life_of(recording->view()) == session::Life::alive;
}

bool Source::has_freed_most() const {
  const session::Header& header = recording->header();
  session::Failure failed{};
  if (failure() != 0) {
    constexpr std::uint64_t kLittle = 32 << 20;
    const std::uint64_t left =
        recording->totals(Space::heap).live_bytes + recording->totals(Space::map).live_bytes;
    return recording->view().read(session::TableId::failures, failure(), failed) &&
           is_on_host(static_cast<Space>(failed.space)) && failed.live_bytes > 2 * left + kLittle;
  }
  const bool has_exited =
      header.state == static_cast<std::uint32_t>(session::State::exited) && header.exit_status == 0;
  return bundle.empty() ? has_exited : reason() == verdict::kReasonAtExit;
}

Trigger Source::trigger() const {
  for (const std::string& word : {metadata.reason, manifest.reason})
    if (const auto stored = value_named<Trigger>(kTriggerNames, word)) return *stored;
  if (!imported_from.empty()) return failure() != 0 ? Trigger::allocation_failed : Trigger::request;
  if (recording->header().simulated != 0) return Trigger::simulated;
  return trigger_of(recording->view());
}

std::string Source::outcome() const {
  const auto stored_or = [&](OutcomeKind otherwise) {
    return metadata.outcome.empty() ? std::string{name_of(otherwise)} : metadata.outcome;
  };
  if (is_job()) return stored_or(OutcomeKind::unknown);
  if (!imported_from.empty()) return std::string{name_of(OutcomeKind::unknown)};
  if (ending) return ending->outcome_text();
  const std::string word = stored_or(OutcomeKind::running);
  return bundle.empty() ? word : current_outcome(word, recording->header(), bundle, manifest);
}

std::uint32_t Source::failure() const {
  if (!metadata.reason.empty() && !metadata.request) return 0;
  const auto& stored = metadata.failure;
  const bool there = stored && *stored < recording->view().count(TableId::failures);
  return there ? *stored : last_failure(recording->view());
}

std::string Source::reason() const { return metadata.context.value_or(""); }

std::uint64_t Source::repeats() const {
  if (metadata.request) return metadata.request->repeats;
  const std::uint32_t counted = bundle::repeats_of(recording->view(), failure());
  return counted != bundle::kRepeatsUnknown ? counted : 0;
}

facts::Aftershocks Source::aftershocks() const {
  if (metadata.request) return metadata.request->aftershocks;
  return bundle::aftershocks_of(recording->view(), failure());
}

verdict::Verdict Source::verdict() const {
  if (is_job()) return metadata.verdict;  // its recording does not determine one
  const session::EndEvidence* const end = ending && ending->killed ? &ending->evidence : nullptr;
  return verdict::verdict_of(recording->view(), trigger(), failure(), reason(), outcome(), end);
}

namespace {

constexpr std::uint64_t kMostBytes = std::uint64_t{512} << 20;

std::string contents_of(const ForeignPath& file) {
  try {
    return read_foreign_file(file, kMostBytes);
  } catch (const std::runtime_error& error) {
    throw formats::PickleError{fmt::format("it {}", error.what())};
  }
}

std::uint64_t modified_ns(const ForeignPath& file) {
  const struct stat status = ForeignFile{file}.status();
  return static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
}

}  // namespace

bool is_snapshot(const ForeignPath& file) {
  return formats::may_be_snapshot(first_bytes_of(file, 1));
}

std::optional<ForeignPath> snapshot_in(const std::filesystem::path& bundle) {
  if (bundle.empty()) return std::nullopt;
  ForeignPath file = ForeignPath::in(bundle, kSnapshotName);
  return is_snapshot(file) ? std::optional{std::move(file)} : std::nullopt;
}

Source open_snapshot(const ForeignPath& file) {
  Source source;
  source.imported_from = "memory snapshot of PyTorch";
  try {
    const std::string bytes = contents_of(file);
    formats::ImportedSnapshot snapshot = formats::import_snapshot(bytes, modified_ns(file));
    source.recording = std::make_unique<recording::Recording>(
        file.path(), std::move(snapshot.bytes), snapshot.count);
    recording::StoredSymbols names;
    for (std::size_t i = 0; i < snapshot.native_names.size(); ++i)
      names.add(formats::kNativeBuildId, i + 1, std::move(snapshot.native_names[i]));
    source.locations = std::make_unique<recording::Locations>(*source.recording, std::move(names));
    source.metadata.failure = snapshot.last_failure;
    source.metadata.context = "torch.cuda.memory._dump_snapshot";
  } catch (const formats::PickleError& error) {
    throw Error{Exit::bad_input,
                fmt::format("{} is not a readable PyTorch memory snapshot: {}",
                            printable(file.path().string()), error.what()),
                "Make one with torch.cuda.memory._dump_snapshot(FILE)."};
  }
  return source;
}

}  // namespace oomrec::tools::bundles
