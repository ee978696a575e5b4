#include "tools/bundles/store/bundles.h"

#include <fmt/format.h>
#include <glob.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "common/bundle/manifest.h"
#include "common/session/view.h"
#include "common/text/text.h"
#include "tools/base/directory.h"
#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/store/outcome.h"
#include "tools/recording/reading/recording.h"
#include "tools/recording/reading/script.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// "/var/oom/%h/%p" as a glob pattern: "/var/oom/*/*". Escapes what glob() would expand.
std::string glob_pattern(const std::string& text) {
  std::string pattern;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%' && i + 1 < text.size()) {
      pattern += text[++i] == '%' ? "%" : "*";
    } else {
      if (std::string_view{"*?[\\"}.find(text[i]) != std::string_view::npos) pattern += '\\';
      pattern += text[i];
    }
  }
  return pattern;
}

std::uint64_t bytes_of(const fs::path& bundle) {
  std::uint64_t bytes = 0;
  for (const fs::path& path : entries_of(bundle)) {
    struct stat status {};
    if (lstat(path.c_str(), &status) == 0 && S_ISREG(status.st_mode))
      bytes += static_cast<std::uint64_t>(status.st_size);
  }
  return bytes;
}

// Empty if it cannot be read.
std::string text_of_manifest(const fs::path& bundle) {
  constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
  try {
    return read_foreign_file(ForeignPath::in(bundle, "manifest.json"), kMostBytes);
  } catch (const std::exception&) {
    return {};
  }
}

// The bundle's running number in its directory: 17 in oom_cuda_20261122_142754_017.
unsigned long number_in(const fs::path& bundle) {
  const std::string name = bundle.filename();
  std::string_view number = std::string_view{name}.substr(name.rfind('_') + 1);
  return take_number<unsigned long>(number).value_or(0);
}

std::vector<bundle::EpisodeBundle> episodes_of(const std::vector<BundleSummary>& bundles) {
  std::vector<bundle::EpisodeBundle> episodes;
  episodes.reserve(bundles.size());
  for (const BundleSummary& bundle : bundles) episodes.push_back(bundle.episode);
  return episodes;
}

void group(std::vector<BundleSummary>& bundles) {
  std::vector<bundle::EpisodeBundle> episodes = episodes_of(bundles);
  bundle::group_episodes(episodes);
  for (std::size_t i = 0; i < bundles.size(); ++i) bundles[i].episode = episodes[i];
}

}  // namespace

// The boot id is no part of it: a redacted bundle has none. The start in nanoseconds tells machines
// apart.
std::string death_id(const session::Header& header, std::uint64_t number) {
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a
  for (const std::uint64_t part : {static_cast<std::uint64_t>(header.pid), header.start_ticks,
                                   header.start_realtime_ns, header.start_monotonic_ns, number}) {
    for (unsigned byte = 0; byte < 8; ++byte) {
      hash ^= part >> (8 * byte) & 0xff;
      hash *= 0x100000001b3;
    }
  }
  return fmt::format("{:016x}", hash);
}

std::vector<fs::path> dump_directories() {
  const std::string named = environment_variable("OOMREC_DUMP_DIR");
  return dump_directories(named.empty() ? "oom_dumps" : named);
}

std::vector<fs::path> dump_directories(const std::string& value) {
  std::vector<fs::path> directories;
  glob_t found{};
  if (glob(glob_pattern(absolute_path(value).string()).c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code error;
      if (fs::is_directory(found.gl_pathv[i], error)) directories.emplace_back(found.gl_pathv[i]);
    }
  }
  globfree(&found);
  if (directories.empty() && value.find('%') == std::string::npos) {
    directories.push_back(absolute_path(value).lexically_normal());
  }
  return directories;
}

void wait_for_bundle(const std::function<bool()>& is_complete) {
  constexpr int kPolls = 100;
  for (int poll = 0; poll < kPolls && !is_complete(); ++poll)
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
}

bool is_bundle(const fs::path& directory) {
  std::error_code error;
  return fs::is_regular_file(directory / kRecordingName, error) ||
         !read_file<Manifest>(directory).bundle_name.empty();
}

ForeignPath recording_in(const fs::path& bundle) { return ForeignPath::in(bundle, kRecordingName); }

BundleSummary summary_of(const fs::path& bundle) {
  BundleSummary summary;
  summary.path = absolute_path(bundle).lexically_normal();
  if (!summary.path.has_filename()) summary.path = summary.path.parent_path();
  const Manifest manifest = read_file<Manifest>(bundle);
  const Metadata metadata = read_file<Metadata>(bundle);
  summary.created_at_utc = manifest.created_at_utc;
  summary.trigger = manifest.reason;
  summary.outcome = metadata.outcome;
  summary.awaits_outcome = summary.outcome == name_of(OutcomeKind::running);
  summary.verdict = manifest.verdict;
  summary.bytes = bytes_of(bundle);
  summary.episode = bundle::episode_bundle(summary.path.filename().native(),
                                           bundle::manifest_in(text_of_manifest(bundle)));
  try {
    const recording::Recording recording{recording_in(bundle)};
    summary.death_id = death_id(recording.header(), manifest.process_bundle);
    summary.pid = static_cast<std::uint64_t>(recording.header().pid);
    summary.outcome = current_outcome(summary.outcome, recording.header(), summary.path, manifest);
    const std::string program = recording.text(program_of(recording.header()));
    summary.program = text::base_name(program);
    summary.script = recording::script_of(recording);
    summary.episode.recovered = summary.outcome == name_of(OutcomeKind::recovered);
  } catch (const Error&) {
    // Listed anyway: its JSON files may be intact.
  }
  return summary;
}

std::vector<BundleSummary> bundles_in(const std::vector<fs::path>& directories) {
  std::vector<BundleSummary> bundles;
  for (const fs::path& directory : directories) {
    for (const fs::path& path : entries_of(directory)) {
      std::error_code error;
      if (!is_hidden(path) && fs::is_regular_file(path / "manifest.json", error) && is_bundle(path))
        bundles.push_back(summary_of(path));
    }
  }
  std::ranges::sort(bundles, [](const BundleSummary& a, const BundleSummary& b) {
    if (a.created_at_utc != b.created_at_utc) return a.created_at_utc > b.created_at_utc;
    const unsigned long number = number_in(a.path), other = number_in(b.path);
    return number != other ? number > other : a.path > b.path;
  });
  group(bundles);
  return bundles;
}

const BundleSummary& newest_cause(const std::vector<BundleSummary>& bundles) {
  return bundles[bundle::newest_cause(episodes_of(bundles))];
}

fs::path absolute_directory(const fs::path& directory) {
  const fs::path path = absolute_path(directory).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace oomrec::tools::bundles
