// A temporary directory, deleted with its object.
#pragma once

#include <filesystem>

namespace oomrec::tools::bundles {

class ScratchDirectory {
 public:
  ScratchDirectory();  // throws Error if it cannot be created
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace oomrec::tools::bundles
