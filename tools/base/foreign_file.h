// Opens files that others wrote or named: only regular ones, and never more than a bound.
//
// The file is opened without waiting and checked after that: a FIFO would block, a device may act
// on being opened, and what a path names may change between a check and an open.
#pragma once

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

#include "tools/base/descriptor.h"

namespace oomrec::tools {

// Which file to open, and whether it may be a link.
class ForeignPath {
 public:
  // A file that the user named: links are followed.
  static ForeignPath named(std::filesystem::path file);
  // A file of a bundle. The user may have named the directory by a link; the file itself may not be
  // one, or the bundle's author could make us read any file.
  static ForeignPath in(const std::filesystem::path& directory, std::string_view name);

  const std::filesystem::path& path() const { return path_; }
  bool may_be_link() const { return may_be_link_; }
  // A descriptor for reading; −1 with errno set. Without O_CREAT, it never creates the file.
  int open() const;

 private:
  ForeignPath(std::filesystem::path path, bool may_be_link)
      : path_(std::move(path)), may_be_link_(may_be_link) {}

  std::filesystem::path path_;
  bool may_be_link_;
};

class ForeignFile {
 public:
  explicit ForeignFile(const ForeignPath& file);

  // Why it cannot be read, as the end of a sentence: "is missing", "is a symbolic link", "is not a
  // file", "cannot be read: Permission denied". Empty: it is open.
  const std::string& problem() const { return problem_; }
  int error() const { return error_; }  // the errno behind it; 0: it is open, but not a file
  int descriptor() const { return descriptor_; }
  const struct stat& status() const { return status_; }
  std::uint64_t bytes() const { return static_cast<std::uint64_t>(status_.st_size); }

  // At most `most` bytes from the start. Files of /proc are longer than their size says.
  std::string read_up_to(std::uint64_t most);

 private:
  Descriptor descriptor_;
  int error_ = 0;  // an errno
  struct stat status_ {};
  std::string problem_;
};

// The contents. Throws std::runtime_error with ForeignFile::problem(), or "is larger than 64 MiB".
std::string read_foreign_file(const ForeignPath& file, std::uint64_t most_bytes);

// The first bytes; fewer if the file is shorter, none if it is not a readable regular file.
std::string first_bytes_of(const ForeignPath& file, std::size_t bytes);

}  // namespace oomrec::tools
