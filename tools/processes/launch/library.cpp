#include "tools/processes/launch/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <tuple>
#include <vector>

#include "common/machine/platform.h"
#include "common/program/preload_list.h"
#include "tools/base/directory.h"
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
  const auto best = std::max_element(
      all.begin(), all.end(), [](const PackagedLibrary& a, const PackagedLibrary& b) {
        return std::tie(a.same_version, a.installed) < std::tie(b.same_version, b.installed);
      });
  return best == all.end() ? fs::path{} : best->library;
}

}  // namespace

std::string find_library() {
  std::error_code ignored;
  if (const char* named = std::getenv("OOMREC_LIBRARY"); named != nullptr && *named != '\0') {
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

}  // namespace oomrec::tools::processes
