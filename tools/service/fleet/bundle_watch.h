// Which bundles have come since we watch.
//
// A directory is listed again at each look; of what is new the manifest is read. What was written
// before the watch began is not news, whenever its directory is first looked at.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/session/vocabulary.h"

namespace oomrec::tools::service {

struct NewBundle {
  std::filesystem::path path;
  Trigger trigger = Trigger::none;
  std::string process;  // as manifests name it: process_key()
  std::string program;
  std::string rank;  // empty: it has none
};

class BundleWatch {
 public:
  // What is in these now is no news.
  explicit BundleWatch(const std::set<std::filesystem::path>& directories);

  std::vector<NewBundle> look(const std::set<std::filesystem::path>& directories);

 private:
  const std::uint64_t began_s_;                                   // since 1970
  std::map<std::filesystem::path, std::set<std::string>> known_;  // names, by directory
};

}  // namespace oomrec::tools::service
