// Lines of source code, where the files that places name are here.
//
// A recording may name any file: only plain ones that have a source file's name are read, and those
// only that whoever made the recording could read, too: root must not show a user's recording what
// is another's. A file that was changed after the recorded process began is shown all the same, and
// told (newer_files()): its lines may be others.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/places.h"

namespace oomrec::tools::recording {

class SourceLines {
 public:
  static constexpr std::uint64_t kMostFileBytes = std::uint64_t{4} << 20;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // of all files
  static constexpr std::size_t kMostColumns = 200;

  // `directory`: where sources are that were elsewhere on the machine of the recording; a file is
  // looked for there by its path, then by ever fewer of its last components. May be empty.
  SourceLines(const Recording& recording, std::filesystem::path directory);

  // Without the blanks around it, printable; empty when it is not to be had.
  std::string of(const Place& place);

  std::vector<std::string> newer_files() const;

 private:
  struct File {
    std::string text;
    bool newer = false;
  };
  const File& file_of(const std::string& name);
  bool read(const std::filesystem::path& path, File& file);
  bool may_be_shown(const std::filesystem::path& path, uid_t owner, mode_t mode) const;

  std::string working_directory_;
  std::uint64_t begun_ns_;
  uid_t recorded_by_;
  std::filesystem::path directory_;
  std::map<std::string, File> files_;  // as places name them; without text: not to be had
  std::uint64_t bytes_ = 0;
};

}  // namespace oomrec::tools::recording
