// Watches directories for new files with inotify, including directories that do not exist yet.
#pragma once

#include <filesystem>
#include <map>
#include <set>
#include <string>

#include "tools/base/descriptor.h"

namespace oomrec::tools::service {

class NewFiles {
 public:
  NewFiles();

  // Adds a directory. If it is missing, waits for its creation. Repeated calls are cheap.
  void watch(const std::filesystem::path& directory);

  // Poll for POLLIN; −1: inotify is not available.
  int descriptor() const { return descriptor_; }

  // Reads the pending events. True: a file in a watched directory, or a missing directory, was
  // created.
  bool read_events();

 private:
  // The names awaited in a watched directory; "": any name.
  using Names = std::set<std::string>;

  Descriptor descriptor_;
  std::map<int, Names> awaited_;  // by watch descriptor
};

}  // namespace oomrec::tools::service
