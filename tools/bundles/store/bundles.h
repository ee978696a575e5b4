// Where bundles are, and what stands on their outside.
#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/session/vocabulary.h"
#include "tools/base/json.h"

namespace oomrec::tools::bundles {

struct BundleSummary {
  std::filesystem::path path;                                      // absolute
  std::string created_at_utc, trigger, verdict, outcome, program;  // empty: unknown
  bool open = false;                                               // nobody completed the outcome
  std::uint64_t pid = 0;                                           // 0: unknown
  std::uint64_t bytes = 0;
};

// The dump directories of OOMREC_DUMP_DIR, or ./oom_dumps. Where the variable holds % it is a
// pattern, and stands for every directory it may have become and that is there; else the directory
// may be yet to be made. Absolute.
std::vector<std::filesystem::path> dump_directories();
std::vector<std::filesystem::path> dump_directories(const std::string& variable);  // of this value

// Whether the directory is a bundle, also one that is damaged or was written by GPU Memory
// Profiler. Others write a manifest.json as well: `oomrec diagnose` does.
bool is_bundle(const std::filesystem::path& directory);

// Bundles of these directories, the newest first. A directory without a manifest is none.
std::vector<BundleSummary> bundles_in(const std::vector<std::filesystem::path>& directories);

// Waits for a bundle that somebody else is writing, two seconds at most: until `is_there()`.
void wait_for_bundle(const std::function<bool()>& is_there);

// Why a bundle was written, by its metadata.
std::optional<Trigger> trigger_in(const Json& metadata);

BundleSummary summary_of(const std::filesystem::path& bundle);

// An absolute path without a slash at its end.
std::filesystem::path absolute_directory(const std::filesystem::path& directory);

inline constexpr const char* kRecordingName = "recording.oomrec";

// Of a merged bundle: the directory of its ranks' bundles, and the file that lists them.
inline constexpr const char* kRanksName = "ranks";
inline constexpr const char* kJobName = "ranks.json";

}  // namespace oomrec::tools::bundles
