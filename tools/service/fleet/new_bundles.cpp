#include "tools/service/fleet/new_bundles.h"

#include "common/system/units.h"
#include "tools/base/directory.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/store/access.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"

namespace oomrec::tools::service {

namespace fs = std::filesystem;

namespace {

std::string rank_in(const Json& manifest) {
  const auto rank = number_of(manifest, "rank");
  return rank ? std::to_string(*rank) : std::string{};
}

}  // namespace

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
        const Json manifest = read_json(path, "manifest.json");
        const auto created = text_of(manifest, "created_at_utc");
        if (!created) continue;  // still being written
        if (time_of_text(*created) / kSecondNs >= watch_start_s_) {
          found.push_back({path, bundles::trigger_in(manifest).value_or(Trigger::none),
                           text_of(manifest, "process").value_or(""),
                           text_of(manifest, "program").value_or(""), rank_in(manifest)});
        }
      }
      present.insert(std::move(name));
    }
    seen_[directory] = std::move(present);  // forgets what retention deleted
  }
  return found;
}

}  // namespace oomrec::tools::service
