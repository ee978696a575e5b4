// Source lines of locations, if their files exist on this machine.
//
// A recording may name any file. So only regular files with the suffix of a source file are read,
// and only those that the recording's owner could read: root must not reveal another user's files
// through a forged recording. Lines of a file that changed after the recorded process started are
// shown, but may be wrong: newer_files() lists such files.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "tools/recording/reading/recording.h"
#include "tools/recording/symbolize/locations.h"

namespace oomrec::tools::recording {

// Lines of a file, one below the other.
struct Excerpt {
  std::uint32_t first = 0;         // the number of the first line
  std::vector<std::string> lines;  // printable, with their indentation; empty: not available
};

class SourceLines {
 public:
  static constexpr std::uint64_t kMostFileBytes = std::uint64_t{4} << 20;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{64} << 20;  // of all files
  static constexpr std::size_t kMostColumns = 200;

  // `directory`: the user's source directory, or empty. A file is searched there by its full path,
  // then by fewer and fewer of its last components.
  SourceLines(const Recording& recording, std::filesystem::path directory);

  // The line, printable and without surrounding blanks; empty: not available.
  std::string of(const Location& location);

  // The line with up to `around` lines before and after it. Empty if the file changed after the
  // recorded process started: what is around the line is not what it was.
  Excerpt excerpt_of(const Location& location, std::uint32_t around);

  std::vector<std::string> newer_files() const;

 private:
  struct File {
    std::string text;
    bool newer = false;
  };
  const File& file_of(const std::string& name);
  const File* file_of(const Location& location);  // nullptr: it names no line of a source file
  bool read(const std::filesystem::path& path, File& file);
  bool may_be_shown(const std::filesystem::path& path, uid_t owner, mode_t mode) const;

  std::string working_directory_;
  std::uint64_t start_ns_;
  uid_t recorded_by_;
  std::filesystem::path directory_;
  std::map<std::string, File> files_;  // by Location::file; empty text: not available
  std::uint64_t bytes_ = 0;
};

}  // namespace oomrec::tools::recording
