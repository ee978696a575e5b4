// Finds bundles in their dump directories and summarizes each for a list.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "common/bundle/episodes.h"
#include "common/session/layout.h"
#include "common/session/vocabulary.h"
#include "tools/base/foreign_file.h"

namespace oomrec::tools::bundles {

struct BundleSummary {
  std::filesystem::path path;                                      // absolute
  std::string created_at_utc, trigger, verdict, outcome, program;  // empty: unknown
  std::string script;           // that `program`, an interpreter, ran; empty: none, or unknown
  bool awaits_outcome = false;  // still "running" in its metadata
  std::uint64_t pid = 0;        // 0: unknown
  std::uint64_t bytes = 0;
  std::string death_id;             // empty: unknown
  bundle::EpisodeBundle episode{};  // `root` is an index into the list that it is from
};

// What a fleet calls the event of a bundle; its redacted copy has the same. `number`: of the bundle
// within its process, from 1; 0: none.
std::string death_id(const session::Header& header, std::uint64_t number);

// The dump directories of OOMREC_DUMP_DIR, or ./oom_dumps, as absolute paths. A value with % is a
// pattern: the result is every existing directory that it may have expanded to. Without %, the
// directory need not exist yet.
std::vector<std::filesystem::path> dump_directories();
// The same for this value of the variable.
std::vector<std::filesystem::path> dump_directories(const std::string& value);

// True also for a damaged bundle and one by GPU Memory Profiler. A manifest.json alone does not
// make a bundle: `oomrec diagnose` writes one, too.
bool is_bundle(const std::filesystem::path& directory);

// The bundles in these directories, newest first, grouped into episodes. Skips directories without
// a manifest.
std::vector<BundleSummary> bundles_in(const std::vector<std::filesystem::path>& directories);

// The one that tells the cause of the newest incident (common/bundle/episodes.h).
const BundleSummary& newest_cause(const std::vector<BundleSummary>& bundles);

// Waits until `is_complete()`, at most two seconds, for a bundle that another process is writing.
void wait_for_bundle(const std::function<bool()>& is_complete);

BundleSummary summary_of(const std::filesystem::path& bundle);

// The absolute path, without a trailing slash.
std::filesystem::path absolute_directory(const std::filesystem::path& directory);

inline constexpr const char* kRecordingName = "recording.oomrec";
inline constexpr const char* kSnapshotName = "torch_snapshot.pickle";

// The recording in a bundle.
ForeignPath recording_in(const std::filesystem::path& bundle);

// In a merged bundle: the directory of its ranks' bundles, and the file that lists them.
inline constexpr const char* kRanksName = "ranks";
inline constexpr const char* kJobName = "ranks.json";

}  // namespace oomrec::tools::bundles
