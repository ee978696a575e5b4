// Finds bundles written since the watch began.
//
// Each call lists the directories and reads the manifests of new bundles. Never returns a bundle
// from before the watch, even from a directory that is listed for the first time.
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
  std::string process;  // as in manifests: process_key()
  std::string program;
  std::string rank;  // empty: none
};

class NewBundles {
 public:
  // Ignores the bundles that these directories contain now.
  explicit NewBundles(const std::set<std::filesystem::path>& directories);

  std::vector<NewBundle> take_new(const std::set<std::filesystem::path>& directories);

 private:
  const std::uint64_t watch_start_s_;                            // since 1970
  std::map<std::filesystem::path, std::set<std::string>> seen_;  // names, by directory
};

}  // namespace oomrec::tools::service
