#include "tools/processes/launch/library.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <tuple>
#include <vector>

#include "common/program/preload_list.h"
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
  const fs::path whole = fs::canonical(path, ignored);
  return whole.empty() ? path.string() : whole.string();
}

// The library in a Python's package, and how likely it was installed with this command: pip writes
// the version into the name of a directory beside the package.
struct Packaged {
  fs::path library;
  bool same_version = false;
  fs::file_time_type installed = fs::file_time_type::min();
};

// `modules`: a folder that Python imports from.
void add_packaged(const fs::path& modules, std::vector<Packaged>& all) {
  const fs::path library = modules / kPackage / kName;
  if (!is_library(library)) return;
  std::error_code ignored;
  const fs::path facts = modules / fmt::format("{}-{}.dist-info", kPackage, OOMREC_VERSION);
  Packaged one{library, fs::is_directory(facts, ignored)};
  const auto when = fs::last_write_time(one.same_version ? facts : library, ignored);
  if (!ignored) one.installed = when;
  all.push_back(std::move(one));
}

// In the installation whose scripts are in `folder`: a virtual environment, ~/.local, the system,
// or a folder that pip was told as its target.
fs::path in_a_package(const fs::path& folder) {
  std::vector<Packaged> all;
  add_packaged(folder.parent_path(), all);
  for (const char* libraries : {"lib", "lib64"}) {
    std::error_code error;
    for (fs::directory_iterator at{folder.parent_path() / libraries, error}, end;
         !error && at != end; at.increment(error)) {
      if (!at->path().filename().string().starts_with("python3")) continue;
      for (const char* modules : {"site-packages", "dist-packages"})
        add_packaged(at->path() / modules, all);
    }
  }
  const auto best =
      std::max_element(all.begin(), all.end(), [](const Packaged& one, const Packaged& other) {
        return std::tie(one.same_version, one.installed) <
               std::tie(other.same_version, other.installed);
      });
  return best == all.end() ? fs::path{} : best->library;
}

}  // namespace

std::string find_library() {
  std::error_code ignored;
  if (const char* named = std::getenv("OOMREC_LIBRARY"); named != nullptr && *named != '\0') {
    if (is_library(named)) return resolved(named);
    throw Error{Exit::run_failed,
                fmt::format("OOMREC_LIBRARY is {}, which is no file", printable(named)),
                "Unset it, or set it to the path of liboomrec.so."};
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* place :
       {".", "../" OOMREC_LIBDIR, "../lib/x86_64-linux-gnu", "../lib", "../lib64"}) {
    if (is_library(folder / place / kName)) return resolved(folder / place / kName);
  }
  if (const fs::path packaged = in_a_package(folder); !packaged.empty()) return resolved(packaged);
  throw Error{Exit::run_failed, fmt::format("there is no {} near {}", kName, folder.string()),
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
