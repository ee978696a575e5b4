#include "tools/processes/launch/library.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <tuple>
#include <vector>

#include "common/machine/platform.h"
#include "common/program/preload_list.h"
#include "tools/base/directory.h"
#include "tools/base/environment.h"
#include "tools/base/error.h"
#include "tools/base/text.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "liboomrec.so";
constexpr const char* kPackage = "oomrec";

bool is_library(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

std::string resolved(const fs::path& path) {
  std::error_code ignored;
  const fs::path canonical = fs::canonical(path, ignored);
  return canonical.empty() ? path.string() : canonical.string();
}

// A library in a Python package. Its version shows whether it was installed with this command: pip
// names a directory beside the package after the version.
struct PackagedLibrary {
  fs::path library;
  bool same_version = false;
  fs::file_time_type installed = fs::file_time_type::min();
};

// `modules`: a directory that Python imports from.
void add_packaged(const fs::path& modules, std::vector<PackagedLibrary>& all) {
  const fs::path library = modules / kPackage / kName;
  if (!is_library(library)) return;
  std::error_code ignored;
  const fs::path facts = modules / fmt::format("{}-{}.dist-info", kPackage, OOMREC_VERSION);
  PackagedLibrary packaged{library, fs::is_directory(facts, ignored)};
  const auto time = fs::last_write_time(packaged.same_version ? facts : library, ignored);
  if (!ignored) packaged.installed = time;
  all.push_back(std::move(packaged));
}

// Searches the installation whose scripts are in `directory`: a virtual environment, ~/.local, the
// system, or a target directory of pip.
fs::path find_packaged(const fs::path& directory) {
  std::vector<PackagedLibrary> all;
  add_packaged(directory.parent_path(), all);
  for (const char* libraries : {"lib", "lib64"}) {
    for (const fs::path& python : entries_of(directory.parent_path() / libraries)) {
      if (!python.filename().native().starts_with("python3")) continue;
      for (const char* modules : {"site-packages", "dist-packages"})
        add_packaged(python / modules, all);
    }
  }
  const auto best =
      std::ranges::max_element(all, [](const PackagedLibrary& a, const PackagedLibrary& b) {
        return std::tie(a.same_version, a.installed) < std::tie(b.same_version, b.installed);
      });
  return best == all.end() ? fs::path{} : best->library;
}

}  // namespace

std::string find_library() {
  std::error_code ignored;
  if (const std::string named = environment_variable("OOMREC_LIBRARY"); !named.empty()) {
    if (is_library(named)) return resolved(named);
    throw Error{Exit::run_failed,
                fmt::format("OOMREC_LIBRARY is {}, which is not a file", printable(named)),
                "Unset it, or set it to the path of liboomrec.so."};
  }
  const fs::path directory = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* relative :
       {".", "../" OOMREC_LIBDIR, "../lib/" OOMREC_MULTIARCH, "../lib", "../lib64"}) {
    if (is_library(directory / relative / kName)) return resolved(directory / relative / kName);
  }
  if (const fs::path packaged = find_packaged(directory); !packaged.empty())
    return resolved(packaged);
  if (directory.empty()) {
    throw Error{Exit::run_failed,
                "oomrec cannot find its own directory: /proc/self/exe cannot be read",
                "Mount /proc, or set OOMREC_LIBRARY to the path of liboomrec.so."};
  }
  throw Error{Exit::run_failed,
              fmt::format("there is no {} near {}", kName, printable(directory.string())),
              "Build or install it, or set OOMREC_LIBRARY to its path."};
}

std::string preload_value(const std::string& library, const char* present) {
  const std::string_view list = present != nullptr ? present : "";
  std::string others(list.size(), '\0');
  others.resize(program::copy_without_preload(list, kName, others.data()));
  const bool any = others.find_first_not_of(" :") != std::string::npos;
  return any ? library + ":" + others : library;
}

namespace {

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
  for (const std::string& base :
       {environment_variable("TMPDIR"), std::string{"/tmp"}, std::string{"/dev/shm"}}) {
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
