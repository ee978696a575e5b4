// A path for LD_PRELOAD where the library's own has a blank or a colon in it.
//
// Any process that the program starts must find it, whoever's rights that has: the directory of the
// link is this user's, nobody else may write to it, and everybody may look into it. What stands
// there is of a name made from the library's path, so that runs share it.
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

constexpr std::string_view kApart = " :$\t\n";

// FNV-1a: the same name for the same path in every run.
std::uint64_t hash_of(std::string_view text) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (const char byte : text) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  return hash;
}

// Makes the directory if it is not there; false when it is another's, or another may write to it.
bool is_own_directory(const fs::path& path) {
  mkdir(path.c_str(), 0755);
  struct stat facts {};
  return lstat(path.c_str(), &facts) == 0 && S_ISDIR(facts.st_mode) && facts.st_uid == geteuid() &&
         (facts.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool leads_to(const fs::path& link, const std::string& library) {
  std::error_code ignored;
  return fs::read_symlink(link, ignored) == library;
}

// Another run may do the same at this moment: the link is renamed into its place, whole.
bool made_link(const fs::path& link, const std::string& library) {
  if (leads_to(link, library)) return true;
  const fs::path unfinished = fmt::format("{}.{}", link.string(), getpid());
  unlink(unfinished.c_str());
  if (symlink(library.c_str(), unfinished.c_str()) != 0) return false;
  if (rename(unfinished.c_str(), link.c_str()) == 0) return true;
  unlink(unfinished.c_str());
  return false;
}

}  // namespace

bool is_preloadable(const std::string& path) { return path.find_first_of(kApart) == path.npos; }

std::string preloadable(const std::string& library) {
  if (is_preloadable(library)) return library;
  const char* const temporary = std::getenv("TMPDIR");
  for (const std::string base : {temporary != nullptr ? temporary : "", "/tmp", "/dev/shm"}) {
    if (!base.starts_with('/') || !is_preloadable(base)) continue;
    const fs::path own = fs::path{base} / fmt::format("oomrec-library-{}", geteuid());
    const fs::path folder = own / fmt::format("{:016x}", hash_of(library));
    const fs::path link = folder / fs::path{library}.filename();
    if (is_own_directory(own) && is_own_directory(folder) && made_link(link, library)) return link;
  }
  throw Error{Exit::run_failed,
              fmt::format("the loader cannot preload '{}': it takes blanks and colons for the end "
                          "of a name, and no link to it could be made in /tmp",
                          printable(library)),
              "Install it elsewhere, or set OOMREC_LIBRARY to a copy with a plain path."};
}

}  // namespace oomrec::tools::processes
