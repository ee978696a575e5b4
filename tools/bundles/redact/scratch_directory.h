// A directory of a command's own, which goes when its work is done.
#pragma once

#include <filesystem>

namespace oomrec::tools::bundles {

class ScratchDirectory {
 public:
  ScratchDirectory();  // throws Error where none can be made
  ~ScratchDirectory();
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace oomrec::tools::bundles
