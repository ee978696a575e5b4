#include "tools/views/report/output.h"

#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>

#include <cerrno>
#include <cstdlib>

#include "tools/base/foreign_file.h"

namespace oomrec::tools::views {
namespace {

constexpr std::size_t kLongestName = 60;

bool is_set(const char* variable) {
  const char* const value = std::getenv(variable);
  return value != nullptr && *value != '\0';
}

}  // namespace

std::filesystem::path report_file(const std::string& program, const std::string& which) {
  std::string name = program.substr(0, kLongestName);
  for (char& byte : name) {
    const auto is_in = [byte](char first, char last) { return first <= byte && byte <= last; };
    const bool plain = is_in('a', 'z') || is_in('A', 'Z') || is_in('0', '9') || byte == '.' ||
                       byte == '-' || byte == '_';
    if (!plain) byte = '_';
  }
  return fmt::format("oomrec-report-{}-{}.html", name, which);
}

bool is_own_report(const std::filesystem::path& file) {
  constexpr std::size_t kHeadBytes = 2048;  // the skeleton's head up to the title (page.html)
  const ForeignPath path = ForeignPath::in(file.parent_path(), file.filename().string());
  return first_bytes_of(path, kHeadBytes)
             .find(R"(<meta name="generator" content="oomrec report">)") != std::string::npos;
}

bool open_in_browser(const std::filesystem::path& file) {
  if (!is_set("DISPLAY") && !is_set("WAYLAND_DISPLAY")) return false;
  const std::string path = std::filesystem::absolute(file).string();
  std::string words[] = {"xdg-open", path};
  char* const arguments[] = {words[0].data(), words[1].data(), nullptr};
  pid_t child = 0;
  if (posix_spawnp(&child, arguments[0], nullptr, nullptr, arguments, environ) != 0) return false;
  int status = 0;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

}  // namespace oomrec::tools::views
