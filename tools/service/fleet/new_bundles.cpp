#include "tools/service/fleet/new_bundles.h"

#include "common/system/units.h"
#include "tools/base/directory.h"
#include "tools/base/text.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/bundles/store/stored_facts.h"

namespace oomrec::tools::service {

namespace fs = std::filesystem;

NewBundles::NewBundles(const std::set<fs::path>& directories)
    : watch_start_s_(bundles::realtime_now_ns() / kSecondNs) {
  take_new(directories);
}

std::vector<NewBundle> NewBundles::take_new(const std::set<fs::path>& directories) {
  std::vector<NewBundle> found;
  for (const fs::path& directory : directories) {
    std::set<std::string> present;
    for (const fs::path& path : entries_of(directory)) {
      std::string name = path.filename();
      if (!name.starts_with("oom_") || !bundles::is_own_bundle(path)) continue;
      if (!seen_[directory].contains(name)) {
        const auto manifest = bundles::read_file<bundles::Manifest>(path);
        if (manifest.created_at_utc.empty()) continue;  // still being written
        if (time_of_text(manifest.created_at_utc) / kSecondNs >= watch_start_s_) {
          const auto trigger = value_named<Trigger>(kTriggerNames, manifest.reason);
          found.push_back({path, trigger.value_or(Trigger::none), manifest.process,
                           manifest.program, manifest.rank ? std::to_string(*manifest.rank) : ""});
        }
      }
      present.insert(std::move(name));
    }
    seen_[directory] = std::move(present);  // forgets what retention deleted
  }
  return found;
}

}  // namespace oomrec::tools::service
