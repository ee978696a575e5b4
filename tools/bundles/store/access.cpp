#include "tools/bundles/store/access.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>

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

}  // namespace oomrec::tools::bundles
