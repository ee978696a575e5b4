// Files that spare work and may be gone at any time: $XDG_CACHE_HOME/oomrec, else ~/.cache/oomrec.
//
// Commands that run at once share it without a lock: a file is whole or absent, since it is written
// beside its name and then renamed. It takes at most `most_bytes`; the files not read for longest
// go first. A directory that is not ours alone is left alone. Nothing here is an error: a cache
// that cannot be used is one that knows nothing.
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

  // That of the user who runs the command; nullptr when neither variable names a directory of that
  // user, as under sudo with another's HOME.
  static std::shared_ptr<const CacheDirectory> of_user();

  // Empty when there is no such file, or it is another's, no plain file or too large.
  std::string read(const std::string& name) const;
  void write(const std::string& name, std::string_view bytes) const;

 private:
  bool usable() const;
  void trim() const;

  std::filesystem::path path_;
  std::uint64_t most_bytes_;
};

}  // namespace oomrec::tools::recording
