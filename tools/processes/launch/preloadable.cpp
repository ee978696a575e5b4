// A path for LD_PRELOAD if the library's own path contains a blank, a colon or '$'.
//
// The program may start processes of other users, which must find the link. So all users may read
// its directory, but only this one may write to it. A hash of the library's path names the link's
// directory, so that runs share it.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>

#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/processes/launch/library.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kSeparators = " :$\t\n";

// FNV-1a: the same name for the same path in every run.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

// Creates the directory if necessary. False if another user owns it or may write to it.
bool make_own_directory(const fs::path& path) {
  mkdir(path.c_str(), 0755);
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool leads_to(const fs::path& link, const std::string& library) {
  std::error_code ignored;
  return fs::read_symlink(link, ignored) == library;
}

// Renames a temporary link, because another run may create the same one.
bool make_link(const fs::path& link, const std::string& library) {
  if (leads_to(link, library)) return true;
  const fs::path unfinished = fmt::format("{}.{}", link.string(), getpid());
  unlink(unfinished.c_str());
  if (symlink(library.c_str(), unfinished.c_str()) != 0) return false;
  if (rename(unfinished.c_str(), link.c_str()) == 0) return true;
  unlink(unfinished.c_str());
  return false;
}

}  // namespace

bool is_preloadable(const std::string& path) {
  return path.find_first_of(kSeparators) == path.npos;
}

std::string preloadable_path(const std::string& library) {
  if (is_preloadable(library)) return library;
  const char* const temporary = std::getenv("TMPDIR");
  for (const std::string base : {temporary != nullptr ? temporary : "", "/tmp", "/dev/shm"}) {
    if (!base.starts_with('/') || !is_preloadable(base)) continue;
    const fs::path own = fs::path{base} / fmt::format("oomrec-library-{}", geteuid());
    const fs::path directory = own / fmt::format("{:016x}", hash_of(library));
    const fs::path link = directory / fs::path{library}.filename();
    if (make_own_directory(own) && make_own_directory(directory) && make_link(link, library))
      return link;
  }
  throw Error{Exit::run_failed,
              fmt::format("the loader cannot preload '{}': it takes blanks and colons for the end "
                          "of a name, and no link to it could be created in /tmp",
                          printable(library)),
              "Install it elsewhere, or set OOMREC_LIBRARY to a copy with a plain path."};
}

}  // namespace oomrec::tools::processes
