// Directories and paths.
#pragma once

#include <filesystem>
#include <vector>

namespace oomrec::tools {

// Unsorted; empty if the directory is missing or cannot be read.
std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& directory);

// As it is named if there is no working directory any more.
std::filesystem::path absolute_path(const std::filesystem::path& path);

// Whether the name begins with a dot.
bool is_hidden(const std::filesystem::path& path);

// A temporary directory, deleted with its object.
class TemporaryDirectory {
 public:
  TemporaryDirectory();  // throws Error if it cannot be created
  ~TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace oomrec::tools
