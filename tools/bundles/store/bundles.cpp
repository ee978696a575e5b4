#include "tools/bundles/store/bundles.h"

#include <glob.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "common/session/view.h"
#include "common/text/text.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/store/outcome.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

// "/var/oom/%h/%p" as a pattern of the shell: "/var/oom/*/*". What the shell would expand is
// quoted.
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
  std::error_code error;
  for (fs::directory_iterator at{bundle, error}, end; !error && at != end; at.increment(error)) {
    std::error_code ignored;
    const std::uintmax_t size = fs::file_size(at->path(), ignored);
    if (!ignored) bytes += size;
  }
  return bytes;
}

// Of a bundle in its directory, counted up: oom_cuda_20261122_142754_017.
unsigned long number_in(const fs::path& bundle) {
  const std::string name = bundle.filename();
  return std::strtoul(name.c_str() + name.rfind('_') + 1, nullptr, 10);
}

}  // namespace

std::vector<fs::path> dump_directories() {
  const char* named = std::getenv("OOMREC_DUMP_DIR");
  return dump_directories(named != nullptr && *named != '\0' ? named : "oom_dumps");
}

std::vector<fs::path> dump_directories(const std::string& text) {
  std::vector<fs::path> directories;
  glob_t found{};
  if (glob(glob_pattern(fs::absolute(text).string()).c_str(), 0, nullptr, &found) == 0) {
    for (std::size_t i = 0; i < found.gl_pathc; ++i) {
      std::error_code error;
      if (fs::is_directory(found.gl_pathv[i], error)) directories.emplace_back(found.gl_pathv[i]);
    }
  }
  globfree(&found);
  if (directories.empty() && text.find('%') == std::string::npos) {
    directories.push_back(fs::absolute(text).lexically_normal());
  }
  return directories;
}

void wait_for_bundle(const std::function<bool()>& is_there) {
  constexpr int kLooks = 100;
  for (int look = 0; look < kLooks && !is_there(); ++look)
    std::this_thread::sleep_for(std::chrono::milliseconds{20});
}

std::optional<Trigger> trigger_in(const Json& metadata) {
  const auto word = text_of(metadata, "reason");
  const auto at = std::find(kTriggerNames.begin(), kTriggerNames.end(), word.value_or(""));
  if (at == kTriggerNames.end()) return std::nullopt;
  return static_cast<Trigger>(at - kTriggerNames.begin());
}

bool is_bundle(const fs::path& directory) {
  std::error_code error;
  return fs::is_regular_file(directory / kRecordingName, error) ||
         text_of(read_json(directory / "manifest.json"), "bundle_name").has_value();
}

BundleSummary summary_of(const fs::path& bundle) {
  BundleSummary summary;
  summary.path = fs::absolute(bundle).lexically_normal();
  if (!summary.path.has_filename()) summary.path = summary.path.parent_path();
  const Json manifest = read_json(bundle / "manifest.json");
  const Json metadata = read_json(bundle / "metadata.json");
  summary.created_at_utc = text_of(manifest, "created_at_utc").value_or("");
  summary.trigger = text_of(manifest, "reason").value_or("");
  summary.outcome = text_of(metadata, "outcome").value_or("");
  summary.open = summary.outcome == name_of(OutcomeKind::running);
  summary.verdict = text_of(member(metadata, "verdict"), "code").value_or("");
  summary.bytes = bytes_of(bundle);
  try {
    const recording::Recording recording{bundle / kRecordingName};
    summary.pid = static_cast<std::uint64_t>(recording.header().pid);
    summary.outcome = outcome_now(summary.outcome, recording.header(), summary.path, manifest);
    const std::string executable = recording.text(recording.header().executable);
    summary.program = text::base_name(executable);
  } catch (const Error&) {
    // Listed all the same: its JSON files may be whole.
  }
  return summary;
}

std::vector<BundleSummary> bundles_in(const std::vector<fs::path>& directories) {
  std::vector<BundleSummary> bundles;
  for (const fs::path& directory : directories) {
    std::error_code error;
    for (fs::directory_iterator at{directory, error}, end; !error && at != end;
         at.increment(error)) {
      std::error_code ignored;
      const bool hidden = at->path().filename().native().starts_with('.');
      if (!hidden && fs::is_regular_file(at->path() / "manifest.json", ignored) &&
          is_bundle(at->path()))
        bundles.push_back(summary_of(at->path()));
    }
  }
  std::sort(bundles.begin(), bundles.end(), [](const BundleSummary& a, const BundleSummary& b) {
    if (a.created_at_utc != b.created_at_utc) return a.created_at_utc > b.created_at_utc;
    const unsigned long number = number_in(a.path), other = number_in(b.path);
    return number != other ? number > other : a.path > b.path;
  });
  return bundles;
}

fs::path absolute_directory(const fs::path& directory) {
  const fs::path path = fs::absolute(directory).lexically_normal();
  return path.has_filename() ? path : path.parent_path();
}

}  // namespace oomrec::tools::bundles
