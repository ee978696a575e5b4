#include "tools/bundles/store/outcome.h"

#include <ctime>

#include "common/bundle/session_summary.h"
#include "common/system/files.h"
#include "tools/base/directory.h"
#include "tools/base/text.h"
#include "tools/deaths/ending.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

bool is_running(const session::Header& process) {
  return !system::is_of_other_boot(process.boot_id) && bundle::is_visible_by_pid(process);
}

std::string outcome_by_later_bundles(const fs::path& bundle, const Manifest& manifest,
                                     std::uint64_t created_ns) {
  if (manifest.process.empty()) return std::string{name_of(OutcomeKind::unknown)};
  for (const fs::path& path : entries_of(bundle.parent_path())) {
    const Manifest other = read_file<Manifest>(path);
    if (other.process != manifest.process || other.process_bundle <= manifest.process_bundle)
      continue;
    const std::string outcome = read_file<Metadata>(path).outcome;
    if (outcome.empty() || outcome == kRunning) continue;
    return time_of_text(other.created_at_utc) > created_ns + deaths::kFollowsWithinNs
               ? std::string{name_of(OutcomeKind::recovered)}
               : outcome;
  }
  return std::string{name_of(OutcomeKind::unknown)};
}

}  // namespace

std::uint64_t realtime_now_ns() {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * 1'000'000'000 +
         static_cast<std::uint64_t>(now.tv_nsec);
}

std::string current_outcome(const std::string& stored, const session::Header& process,
                            const fs::path& bundle, const Manifest& manifest) {
  if (stored != kRunning) return stored;
  const std::uint64_t created_ns = time_of_text(manifest.created_at_utc);
  if (!is_running(process)) return outcome_by_later_bundles(bundle, manifest, created_ns);
  const bool survived =
      created_ns != 0 && created_ns + deaths::kFollowsWithinNs <= realtime_now_ns();
  return survived ? std::string{name_of(OutcomeKind::recovered)} : stored;
}

}  // namespace oomrec::tools::bundles
