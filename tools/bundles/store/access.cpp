#include "tools/bundles/store/access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <memory>
#include <optional>
#include <string>

#include "common/session/directories.h"
#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

constexpr const char* kBundlePrefix = "oom_";

// Empty: the user may not even stat it.
std::optional<struct stat> status_of(const fs::path& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return std::nullopt;
  return status;
}

std::string name_of_user(uid_t user) {
  const struct passwd* const entry = getpwuid(user);
  return entry != nullptr ? printable(entry->pw_name) : fmt::format("user {}", user);
}

}  // namespace

bool may_read(const fs::path& path) {
  const auto status = status_of(path);
  const int rights = status && S_ISDIR(status->st_mode) ? R_OK | X_OK : R_OK;
  return faccessat(AT_FDCWD, path.c_str(), rights, AT_EACCESS) == 0 || errno != EACCES;
}

void require_readable(const fs::path& path) {
  if (may_read(path)) return;
  const auto status = status_of(path);
  throw Error{Exit::bad_input,
              fmt::format("cannot read {}: Permission denied", printable(path.string())),
              status ? fmt::format("It belongs to {}, with mode {:04o}: read it as that user, or "
                                   "as root.",
                                   name_of_user(status->st_uid), status->st_mode & 07777)
                     : std::string{"You have no access to a directory above it: read it as the "
                                   "user whose program wrote it, or as root."}};
}

bool is_own_bundle(const fs::path& bundle) {
  struct stat status {};
  struct stat above {};
  if (lstat(bundle.c_str(), &status) != 0 || !S_ISDIR(status.st_mode)) return false;
  if (status.st_uid == geteuid()) return true;
  return stat(bundle.parent_path().c_str(), &above) == 0 && above.st_uid == status.st_uid &&
         (above.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

std::vector<fs::path> unreadable_bundles_in(const fs::path& directory) {
  std::vector<fs::path> unreadable;
  for (const fs::path& path : entries_of(directory))
    if (path.filename().native().starts_with(kBundlePrefix) && !may_read(path))
      unreadable.push_back(path);
  return unreadable;
}

using session::Header;

OwnFile::OwnFile(const std::filesystem::path& path)
    : descriptor_(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {}

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
