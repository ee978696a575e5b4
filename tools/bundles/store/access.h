// What belongs to whom: who may read a bundle, whose it is, and files of this user that nobody
// else has exchanged.
#pragma once

#include <filesystem>
#include <vector>

#include "common/session/layout.h"
#include "tools/base/descriptor.h"

namespace oomrec::tools::bundles {

// False only if the user lacks the permission. True for a path that does not exist.
bool may_read(const std::filesystem::path& path);

// Throws Error with bad_input if the user may not read the file, or list and enter the directory.
// The message names the owner and what to do.
void require_readable(const std::filesystem::path& path);

// Whether what is in the bundle was written by this user's programs and commands: other users may
// put bundles into a shared dump directory. Some network file systems give all files another owner.
// So a bundle is this user's, or its owner is that of the dump directory, to which nobody else may
// write. Does not follow a link.
bool is_own_bundle(const std::filesystem::path& bundle);

// Directories in a dump directory that are named like bundles and that the user may not read.
std::vector<std::filesystem::path> unreadable_bundles_in(const std::filesystem::path& directory);

// A file that belongs to the user, opened without following links. A process that recovers a
// recording holds its lock through this.
class OwnFile {
 public:
  explicit OwnFile(const std::filesystem::path& path);

  // A regular file of this user that has not been deleted.
  bool is_ours() const;

  // Takes the lock. False if another process holds it, or has finished and deleted the file.
  bool claim() const;

  // False: the file is not a session yet.
  bool read_header(session::Header& header) const;

  // True if the file will never become a session: its process died before it wrote the header.
  bool was_never_completed(const std::filesystem::path& path) const;

 private:
  Descriptor descriptor_;
};

}  // namespace oomrec::tools::bundles
