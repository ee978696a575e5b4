#include "tools/bundles/store/lives.h"

#include <algorithm>
#include <system_error>

#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/foreign_file.h"
#include "tools/base/json.h"
#include "tools/base/output_file.h"
#include "tools/bundles/store/access.h"

namespace oomrec::tools::bundles {
namespace {

namespace fs = std::filesystem;

constexpr const char* kDirectory = "lives";
constexpr const char* kSuffix = ".json";
constexpr std::uint64_t kMostBytes = 16 * 1024;

fs::file_time_type time_of(const fs::path& file) {
  std::error_code gone;
  const fs::file_time_type time = fs::last_write_time(file, gone);
  return gone ? fs::file_time_type::min() : time;
}

}  // namespace

bool write_life(const fs::path& dump_directory, const std::string& id, const std::string& line) {
  const fs::path directory = dump_directory / kDirectory;
  std::error_code error;
  fs::create_directories(dump_directory, error);
  if (fs::create_directory(directory, error))
    fs::permissions(directory, fs::perms::owner_all, error);
  if (!is_own_bundle(directory)) return false;
  const std::string name = id + kSuffix;
  if (fs::exists(directory / name, error)) return true;
  try {
    replace_file(directory, name, line + "\n");
  } catch (const Error&) {
    if (!fs::exists(directory / name, error)) throw;  // else somebody else has just written it
  }
  const std::vector<fs::path> all = lives_in(dump_directory);
  for (std::size_t i = 0; i + kMostLives < all.size(); ++i) fs::remove(all[i], error);
  return true;
}

std::vector<fs::path> lives_in(const fs::path& dump_directory) {
  const fs::path directory = dump_directory / kDirectory;
  if (!is_own_bundle(directory)) return {};
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  for (const fs::path& path : entries_of(directory))
    if (is_life(path)) found.emplace_back(time_of(path), path);
  std::ranges::sort(found);
  std::vector<fs::path> files;
  files.reserve(found.size());
  for (auto& [time, path] : found) files.push_back(std::move(path));
  return files;
}

bool is_life(const fs::path& file) {
  return file.extension() == kSuffix && !is_hidden(file) &&
         file.parent_path().filename() == kDirectory;
}

std::optional<std::string> read_life(const fs::path& file) try {
  std::string line =
      read_foreign_file(ForeignPath::in(file.parent_path(), file.filename().native()), kMostBytes);
  line.resize(std::min(line.find('\n'), line.size()));
  if (text_of(parse_json(line), "kind") != "life") return std::nullopt;
  return line;
} catch (const std::exception&) {
  return std::nullopt;
}

}  // namespace oomrec::tools::bundles
