#include "tools/bundles/store/own_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>

#include "common/session/directories.h"

namespace oomrec::tools::bundles {

using session::Header;

OwnFile::OwnFile(const std::filesystem::path& path)
    : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}

OwnFile::~OwnFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

bool OwnFile::is_ours() const {
  struct stat status {};
  return descriptor_ >= 0 && fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode) &&
         status.st_uid == geteuid() && status.st_nlink != 0;
}

bool OwnFile::claim() const { return flock(descriptor_, LOCK_EX | LOCK_NB) == 0 && is_ours(); }

bool OwnFile::read_header(Header& header) const {
  const ssize_t got = pread(descriptor_, static_cast<void*>(&header), sizeof header, 0);
  return got == static_cast<ssize_t>(sizeof header) && header.magic == session::kMagic &&
         static_cast<session::State>(header.state.load()) != session::State::starting;
}

bool OwnFile::was_never_completed(const std::filesystem::path& path) const {
  struct stat status {};
  const auto header = std::make_unique<Header>();
  return !read_header(*header) && fstat(descriptor_, &status) == 0 &&
         session::was_never_completed(session::creator_of(path.filename().native()),
                                      status.st_mtim.tv_sec);
}

}  // namespace oomrec::tools::bundles
