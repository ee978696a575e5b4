// The user's cache of files, which may vanish at any time: $XDG_CACHE_HOME/oomrec, else
// ~/.cache/oomrec.
//
// Concurrent commands share it without a lock: a file is written under a temporary name, then
// renamed, so it is complete or absent. The cache keeps at most `most_bytes`, and removes the least
// recently used files first. It uses no directory that others may write to. It reports no errors: a
// cache that cannot be used is empty.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

namespace oomrec::tools::recording {

class CacheDirectory {
 public:
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kMostFileBytes = kMostBytes / 4;

  explicit CacheDirectory(std::filesystem::path path, std::uint64_t most_bytes = kMostBytes);

  // The cache of the user who runs the command. nullptr: neither variable names a directory that
  // the user owns, as under sudo with another user's HOME.
  static std::shared_ptr<const CacheDirectory> of_user();

  // Empty if there is no such file, another user owns it, it is not a regular file, or is too
  // large.
  std::string read(const std::string& name) const;
  void write(const std::string& name, std::string_view bytes) const;

 private:
  bool usable() const;
  void trim() const;

  std::filesystem::path path_;
  std::uint64_t most_bytes_;
};

}  // namespace oomrec::tools::recording
