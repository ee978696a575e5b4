#include "tools/service/fleet/bundle_watch.h"

#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"

namespace oomrec::tools::service {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kNsPerSecond = 1'000'000'000;

std::string rank_in(const Json& manifest) {
  const auto rank = number_of(manifest, "rank");
  return rank ? std::to_string(*rank) : std::string{};
}

}  // namespace

BundleWatch::BundleWatch(const std::set<fs::path>& directories)
    : began_s_(bundles::realtime_now_ns() / kNsPerSecond) {
  look(directories);
}

std::vector<NewBundle> BundleWatch::look(const std::set<fs::path>& directories) {
  std::vector<NewBundle> found;
  for (const fs::path& directory : directories) {
    std::set<std::string> present;
    std::error_code error;
    for (fs::directory_iterator at{directory, error}, end; !error && at != end;
         at.increment(error)) {
      std::string name = at->path().filename();
      if (!name.starts_with("oom_")) continue;
      if (!known_[directory].contains(name)) {
        const Json manifest = read_json(at->path() / "manifest.json");
        const auto created = text_of(manifest, "created_at_utc");
        if (!created) continue;  // it is on its way
        if (time_of_text(*created) / kNsPerSecond >= began_s_) {
          found.push_back({at->path(), bundles::trigger_in(manifest).value_or(Trigger::none),
                           text_of(manifest, "process").value_or(""),
                           text_of(manifest, "program").value_or(""), rank_in(manifest)});
        }
      }
      present.insert(std::move(name));
    }
    known_[directory] = std::move(present);  // what the retention has removed is forgotten
  }
  return found;
}

}  // namespace oomrec::tools::service
