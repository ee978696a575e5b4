#include "tools/launch/library.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "recorder/program/preload_list.h"
#include "tools/error.h"
#include "tools/text.h"

namespace oomrec::tools {
namespace {

namespace fs = std::filesystem;

constexpr const char* kName = "liboomrec.so";

std::string usable(const fs::path& path) {
  std::error_code ignored;
  const fs::path whole = fs::canonical(path, ignored);
  std::string text = whole.empty() ? path.string() : whole.string();
  if (text.find_first_of(" :\t\n") != std::string::npos) {
    throw Error{Exit::run_failed,
                fmt::format("the loader cannot preload '{}': blanks and colons separate names",
                            printable(text)),
                "Install it elsewhere, or set OOMREC_LIBRARY to a copy with a plain path."};
  }
  return text;
}

}  // namespace

std::string find_library() {
  std::error_code ignored;
  if (const char* named = std::getenv("OOMREC_LIBRARY"); named != nullptr && *named != '\0') {
    if (fs::is_regular_file(named, ignored)) return usable(named);
    throw Error{Exit::run_failed,
                fmt::format("OOMREC_LIBRARY is {}, which is no file", printable(named)),
                "Unset it, or set it to the path of liboomrec.so."};
  }
  const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
  for (const char* place :
       {".", "../" OOMREC_LIBDIR, "../lib/x86_64-linux-gnu", "../lib", "../lib64"}) {
    const fs::path candidate = folder / place / kName;
    if (fs::is_regular_file(candidate, ignored)) return usable(candidate);
  }
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

}  // namespace oomrec::tools
