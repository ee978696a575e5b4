#include "tools/findings/diagnose/artifact.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <ctime>

#include "common/system/files.h"
#include "tools/base/output_file.h"
#include "tools/base/secrets.h"
#include "tools/base/text.h"
#include "tools/findings/diagnose/exit.h"

namespace oomrec::tools::findings {
namespace {

namespace fs = std::filesystem;

constexpr unsigned kMostPerSecond = 1000;  // directories with the same time in their names

std::string with_time(const std::string& name) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  char text[64];
  std::strftime(text, sizeof text, "-%Y%m%d-%H%M%S", &parts);
  return name + text;
}

// Returns 0 or an errno.
int make_directory(const fs::path& directory) {
  std::error_code error;
  if (directory.has_parent_path()) fs::create_directories(directory.parent_path(), error);
  return mkdir(directory.c_str(), 0700) == 0 ? 0 : errno;
}

}  // namespace

DiagnoseArtifact::DiagnoseArtifact(const std::string& output, const std::string& name) {
  std::error_code error;
  const fs::path named = fs::absolute(output.empty() ? "." : output, error).lexically_normal();
  int problem = EEXIST;
  if (fs::is_directory(named, error)) {
    const std::string first = with_time(name);
    for (unsigned n = 0; problem == EEXIST && n < kMostPerSecond; ++n) {
      path_ = named / (n == 0 ? first : fmt::format("{}-{}", first, n));
      problem = make_directory(path_);
    }
  } else {
    path_ = named;
    problem = make_directory(path_);
  }
  if (problem == 0) return;
  throw Error{
      kDiagnoseFailed,
      fmt::format("{} cannot be created: {}", printable(path_.string()), std::strerror(problem)),
      "Name another directory: --output DIR"};
}

void DiagnoseArtifact::write(const std::string& name, const Json& value) {
  write_output(path_ / name, json_text(value, 2) + "\n", IfExists::overwrite);
  files_.push_back(name);
}

void DiagnoseArtifact::finish(const std::vector<std::string>& command_line, int exit_code,
                              bool risk, const std::string& error) {
  constexpr const char* kName = "manifest.json";
  files_.emplace_back(kName);
  Json manifest{{"version", 1},
                {"created_iso", time_text(system::realtime_ns())},
                {"command_line", masked_words(command_line)},
                {"files", files_},
                {"exit_code", exit_code},
                {"risk_detected", risk}};
  if (!error.empty()) manifest["error"] = error;
  write_output(path_ / kName, json_text(manifest, 2) + "\n", IfExists::overwrite);
}

}  // namespace oomrec::tools::findings
