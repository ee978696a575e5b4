#include "tools/recording/symbolize/source_lines.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <climits>
#include <string_view>

#include "common/system/files.h"
#include "tools/base/text.h"

namespace oomrec::tools::recording {
namespace {

namespace fs = std::filesystem;

constexpr auto kSuffixes = std::to_array<std::string_view>(
    {".py",    ".pyi", ".pyx", ".pxd", ".pxi", ".c",   ".h",   ".cc",   ".cpp", ".cxx", ".c++",
     ".hh",    ".hpp", ".hxx", ".h++", ".inl", ".inc", ".ipp", ".tcc",  ".cu",  ".cuh", ".hip",
     ".rs",    ".go",  ".f",   ".for", ".f90", ".f95", ".f03", ".f08",  ".d",   ".m",   ".mm",
     ".swift", ".zig", ".nim", ".jl",  ".s",   ".S",   ".asm", ".y",    ".l",   ".ml",  ".pas",
     ".adb",   ".ads", ".pl",  ".rb",  ".lua", ".js",  ".ts",  ".java", ".kt",  ".cs",  ".scala"});

bool is_source_name(const fs::path& path) {
  const std::string suffix = path.extension().string();
  return std::ranges::find(kSuffixes, suffix) != kSuffixes.end();
}

// Whether all users may search every directory above it.
bool is_reachable_by_all(const fs::path& path) {
  for (fs::path above = path.parent_path();; above = above.parent_path()) {
    struct stat status {};
    if (stat(above.c_str(), &status) != 0 || (status.st_mode & S_IXOTH) == 0) return false;
    if (above == above.root_path()) return true;
  }
}

// Removes the first line from `text`, and returns it.
std::string_view take_line(std::string_view& text) {
  const std::string_view line = text.substr(0, text.find('\n'));
  text.remove_prefix(std::min(line.size() + 1, text.size()));
  return line;
}

// The text from a line on. Empty: it has fewer lines.
std::string_view from_line(std::string_view text, std::uint32_t number) {
  for (std::uint32_t line = 1; line < number && !text.empty(); ++line) take_line(text);
  return text;
}

std::string_view line_of(std::string_view text, std::uint32_t number) {
  text = from_line(text, number);
  return take_line(text);
}

// Without the blanks at the end; a tab is four spaces.
std::string with_spaces(std::string_view line) {
  std::string spaced;
  for (const char c : line.substr(0, line.find_last_not_of(" \t\r\f\v") + 1))
    c == '\t' ? spaced.append(4, ' ') : spaced.append(1, c);
  return spaced;
}

std::string_view without_blanks(std::string_view line) {
  constexpr std::string_view kBlanks = " \t\r\f\v";
  const std::size_t first = line.find_first_not_of(kBlanks);
  if (first == line.npos) return {};
  return line.substr(first, line.find_last_not_of(kBlanks) + 1 - first);
}

}  // namespace

SourceLines::SourceLines(const Recording& recording, fs::path directory)
    : working_directory_(recording.text(recording.header().working_directory)),
      start_ns_(recording.header().start_realtime_ns),
      recorded_by_(recording.owner()),
      directory_(std::move(directory)) {}

const SourceLines::File* SourceLines::file_of(const Location& location) {
  const bool nameless = location.line == 0 || location.kind == Location::Kind::note;
  if (nameless || location.file.size() >= PATH_MAX || !is_source_name(location.file))
    return nullptr;
  return &file_of(location.file);
}

std::string SourceLines::of(const Location& location) {
  const File* const file = file_of(location);
  if (file == nullptr) return {};
  return clip(printable(without_blanks(line_of(file->text, location.line))), kMostColumns);
}

Excerpt SourceLines::excerpt_of(const Location& location, std::uint32_t around) {
  const File* const file = file_of(location);
  if (file == nullptr || file->newer || file->text.empty()) return {};
  Excerpt excerpt{location.line > around ? location.line - around : 1, {}};
  std::string_view rest = from_line(file->text, excerpt.first);
  for (std::uint64_t line = excerpt.first;
       !rest.empty() && line <= std::uint64_t{location.line} + around; ++line)
    excerpt.lines.push_back(clip(printable(with_spaces(take_line(rest))), kMostColumns));
  const bool reaches_it = excerpt.first + excerpt.lines.size() > location.line;
  return reaches_it ? excerpt : Excerpt{};
}

std::vector<std::string> SourceLines::newer_files() const {
  std::vector<std::string> names;
  for (const auto& [name, file] : files_) {
    if (file.newer) names.push_back(name);
  }
  return names;
}

const SourceLines::File& SourceLines::file_of(const std::string& name) {
  const auto [at, is_new] = files_.try_emplace(name);
  if (!is_new) return at->second;
  const fs::path path = (fs::path{working_directory_} / name).lexically_normal();
  if (!path.is_absolute()) return at->second;
  std::string_view end = path.native();
  while (!directory_.empty() && !end.empty()) {
    end.remove_prefix(1);  // the slash
    if (read(directory_ / end, at->second)) return at->second;
    end.remove_prefix(std::min(end.find('/'), end.size()));
  }
  read(path, at->second);
  return at->second;
}

bool SourceLines::read(const fs::path& path, File& file) {
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error || !is_source_name(real)) return false;  // a link may lead to another kind of file
  struct stat status {};
  const system::File opened = system::File::open(real.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY);
  if (!opened.is_open() || fstat(opened.descriptor(), &status) != 0 || !S_ISREG(status.st_mode))
    return false;
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes > kMostFileBytes || bytes_ + bytes > kMostBytes) return false;
  if (!may_be_shown(real, status.st_uid, status.st_mode)) return false;
  file.text.resize(bytes);
  const long got = opened.read(file.text.data(), bytes);
  file.text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  bytes_ += file.text.size();
  const auto changed_ns = static_cast<std::uint64_t>(status.st_mtim.tv_sec) * 1'000'000'000 +
                          static_cast<std::uint64_t>(status.st_mtim.tv_nsec);
  // Both times come from the kernel's coarse clock, which is off by a few milliseconds. A script
  // may be written and run at once.
  constexpr std::uint64_t kCoarseNs = 20'000'000;
  file.newer = start_ns_ != 0 && changed_ns > start_ns_ + kCoarseNs;
  return true;
}

bool SourceLines::may_be_shown(const fs::path& path, uid_t owner, mode_t mode) const {
  if (recorded_by_ == geteuid() || owner == recorded_by_) return true;
  return (mode & S_IROTH) != 0 && is_reachable_by_all(path);
}

}  // namespace oomrec::tools::recording
