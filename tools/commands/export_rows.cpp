#include "tools/commands/export_rows.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <optional>
#include <string_view>
#include <utility>

#include "tools/base/error.h"
#include "tools/base/foreign_file.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/lives.h"
#include "tools/commands/commands.h"
#include "tools/views/export/row.h"
#include "tools/views/export/row_renewal.h"

namespace oomrec::tools::commands {
namespace {

// The dump directory that is named; empty if it is none.
std::filesystem::path dump_directory(const std::string& named) {
  std::error_code error;
  const bool is_one = std::filesystem::is_directory(named, error) && !bundles::is_bundle(named);
  return is_one ? bundles::absolute_directory(named) : std::filesystem::path{};
}

// Its bundles, the oldest first, after those of its orphans are written.
std::vector<std::string> bundles_of(const std::filesystem::path& directory,
                                    views::RowWriter& rows) {
  bundles::recover_orphans({directory});
  std::vector<std::string> paths;
  for (const bundles::BundleSummary& bundle : rows.bundles_in(directory))
    paths.insert(paths.begin(), bundle.path.string());
  return paths;
}

// A file of rows, or "-" for those of stdin.
bool holds_rows(const std::string& named) {
  std::error_code error;
  return named == "-" || (std::filesystem::is_regular_file(named, error) &&
                          first_bytes_of(ForeignPath::named(named), 1) == "{");
}

void write_renewed(int rows, const std::string& name, views::Output& output) {
  constexpr std::size_t kPart = 64 * 1024, kMostBytes = 64 * views::kMostRowBytes;
  std::string pending;  // a line that has no end yet
  for (ssize_t bytes = -1; bytes != 0;) {
    const std::size_t before = pending.size();
    pending.resize(before + kPart);
    bytes = TEMP_FAILURE_RETRY(read(rows, pending.data() + before, kPart));
    if (bytes < 0) {
      throw Error{Exit::bad_input,
                  fmt::format("{} cannot be read: {}", printable(name), std::strerror(errno)), ""};
    }
    pending.resize(before + static_cast<std::size_t>(bytes));
    if (bytes == 0 && !pending.empty()) pending += '\n';
    std::size_t begin = 0;
    for (std::size_t end; (end = pending.find('\n', begin)) != pending.npos; begin = end + 1)
      output.write(views::renewed_row(std::string_view{pending}.substr(begin, end - begin)) + "\n");
    pending.erase(0, begin);
    if (pending.size() > kMostBytes) {
      throw Error{Exit::bad_input,
                  fmt::format("{} has a line that is longer than any row", printable(name)),
                  "Give lines that `oomrec export --format row` wrote."};
    }
  }
}

void write_renewed(const std::string& name, views::Output& output) {
  if (name == "-") return write_renewed(STDIN_FILENO, name, output);
  const ForeignFile file{ForeignPath::named(name)};
  if (!file.problem().empty())
    throw Error{Exit::bad_input, fmt::format("{} {}", printable(name), file.problem()), ""};
  write_renewed(file.descriptor(), name, output);
}

}  // namespace

int export_rows(const bundles::ReadOptions& options, const std::vector<std::string>& named,
                views::Output& output) {
  views::RowWriter rows;
  std::vector<std::string> all, lives;
  if (named.empty()) all.emplace_back();  // the newest
  bool has_rows = false;
  for (const std::string& name : named) {
    if (holds_rows(name)) {
      write_renewed(name, output);
      has_rows = true;
      continue;
    }
    const std::filesystem::path directory = dump_directory(name);
    std::vector<std::string> bundles;
    bool has_lives = false;
    if (!directory.empty()) {
      bundles = bundles_of(directory, rows);
      for (const std::filesystem::path& file : bundles::lives_in(directory)) {
        std::optional<std::string> line = bundles::read_life(file);
        if (line) lives.push_back(std::move(*line));
        has_lives = true;
      }
    }
    if (bundles.empty() && !has_lives) all.push_back(name);
    all.insert(all.end(), bundles.begin(), bundles.end());
  }
  for (const std::string& line : lives) output.write(line + "\n");
  const auto write = [&](const bundles::Source& source) {
    output.write(rows.line_of(source) + "\n");
  };
  const auto write_bundle = [&](const std::string& bundle) {
    const bundles::Source source = options.open(bundle);
    if (!source.is_job()) return write(source);
    bundles::for_each_rank(source, [&](const Json&, const bundles::Source& rank) { write(rank); });
  };
  if (all.size() == 1 && lives.empty() && !has_rows) {
    write_bundle(all[0]);
    return code(Exit::shown);
  }
  bool is_complete = true;
  for (const std::string& bundle : all) {
    try {
      write_bundle(bundle);
    } catch (const Error& error) {
      is_complete = false;
      remark(fmt::format("left out: {}: {}", printable(bundle), printable(error.what())));
    }
  }
  return code(is_complete ? Exit::shown : Exit::in_part);
}

}  // namespace oomrec::tools::commands
