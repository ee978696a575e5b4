// A file that belongs to the user, opened without following links. A process that recovers a
// recording holds its lock through this.
#pragma once

#include <filesystem>

#include "common/session/layout.h"

namespace oomrec::tools::bundles {

class OwnFile {
 public:
  explicit OwnFile(const std::filesystem::path& path);
  ~OwnFile();
  OwnFile(const OwnFile&) = delete;
  OwnFile& operator=(const OwnFile&) = delete;

  // A regular file of this user that has not been deleted.
  bool is_ours() const;

  // Takes the lock. False if another process holds it, or has finished and deleted the file.
  bool claim() const;

  // False: the file is not a session yet.
  bool read_header(session::Header& header) const;

  // True if the file will never become a session: its process died before it wrote the header.
  bool was_never_completed(const std::filesystem::path& path) const;

 private:
  int descriptor_;
};

}  // namespace oomrec::tools::bundles
