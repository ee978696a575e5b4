#include "tools/recording/symbolize/cache_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <vector>

#include "common/system/files.h"
#include "tools/base/directory.h"
#include "tools/base/environment.h"

namespace oomrec::tools::recording {
namespace {

namespace fs = std::filesystem;

enum class LastLink : std::uint8_t { follow, reject };  // if the last component is a link

// Whether this user owns the directory, without any of the `forbidden` permissions.
bool is_own_directory(const fs::path& path, mode_t forbidden, LastLink link) {
  struct stat status {};
  const int flags = link == LastLink::follow ? 0 : AT_SYMLINK_NOFOLLOW;
  return fstatat(AT_FDCWD, path.c_str(), &status, flags) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid() && (status.st_mode & forbidden) == 0;
}

// The directory that a variable names, if this user owns it. Relative paths are ignored (XDG Base
// Directory Specification).
fs::path directory_in(const char* variable) {
  const std::string value = environment_variable(variable);
  return value.starts_with('/') && is_own_directory(value, 0, LastLink::follow) ? value : "";
}

// Does not follow a link, nor wait for the other end of a FIFO.
system::File opened(const fs::path& path, int flags) {
  return system::File::open(path.c_str(), flags | O_NOFOLLOW | O_NONBLOCK, 0600);
}

}  // namespace

CacheDirectory::CacheDirectory(fs::path path, std::uint64_t most_bytes)
    : path_(std::move(path)), most_bytes_(most_bytes) {}

std::shared_ptr<const CacheDirectory> CacheDirectory::of_user() {
  const fs::path base = directory_in("XDG_CACHE_HOME");
  if (!base.empty()) return std::make_shared<const CacheDirectory>(base / "oomrec");
  const fs::path home = directory_in("HOME");
  if (home.empty()) return nullptr;
  return std::make_shared<const CacheDirectory>(home / ".cache" / "oomrec");
}

bool CacheDirectory::usable() const {
  return is_own_directory(path_, S_IWGRP | S_IWOTH, LastLink::reject);
}

std::string CacheDirectory::read(const std::string& name) const {
  if (!usable()) return {};
  const system::File file = opened(path_ / name, O_RDONLY);
  struct stat status {};
  if (!file.is_open() || fstat(file.descriptor(), &status) != 0 || !S_ISREG(status.st_mode) ||
      status.st_uid != geteuid() || static_cast<std::uint64_t>(status.st_size) > kMostFileBytes) {
    return {};
  }
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  if (file.read(bytes.data(), bytes.size()) != static_cast<long>(bytes.size())) return {};
  futimens(file.descriptor(), nullptr);  // trim() removes the least recently used files first
  return bytes;
}

void CacheDirectory::write(const std::string& name, std::string_view bytes) const {
  if (bytes.size() > std::min(most_bytes_, kMostFileBytes)) return;
  mkdir(path_.parent_path().c_str(), 0700);
  mkdir(path_.c_str(), 0700);
  if (!usable()) return;
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  // If the command is killed here, trim() removes the unfinished file when it is the oldest.
  const fs::path unfinished =
      path_ / fmt::format("{}.{}.{}{:09}", name, getpid(), now.tv_sec, now.tv_nsec);
  bool is_complete = false;
  {
    const system::File file = opened(unfinished, O_WRONLY | O_CREAT | O_EXCL);
    if (!file.is_open()) return;
    is_complete = file.write(bytes.data(), bytes.size()) == 0;
  }
  if (!is_complete || rename(unfinished.c_str(), (path_ / name).c_str()) != 0) {
    unlink(unfinished.c_str());
    return;
  }
  trim();
}

void CacheDirectory::trim() const {
  struct Entry {
    fs::file_time_type used;
    std::uint64_t bytes;
    fs::path path;
  };
  std::vector<Entry> entries;
  std::uint64_t sum = 0;
  std::error_code gone;  // another command removed the file meanwhile: skip it
  for (const fs::directory_entry& entry : entries_of(path_)) {
    if (!fs::is_regular_file(entry.symlink_status(gone))) continue;
    const std::uint64_t bytes = entry.file_size(gone);
    if (gone) continue;
    entries.push_back({entry.last_write_time(gone), bytes, entry.path()});
    sum += bytes;
  }
  std::ranges::sort(entries, {}, &Entry::used);
  for (const Entry& entry : entries) {
    if (sum <= most_bytes_) return;
    fs::remove(entry.path, gone);
    sum -= entry.bytes;
  }
}

}  // namespace oomrec::tools::recording
