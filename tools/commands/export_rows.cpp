#include "tools/commands/export_rows.h"

#include <fmt/format.h>

#include <filesystem>

#include "tools/base/error.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/ranks/merged.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/bundles.h"
#include "tools/commands/commands.h"
#include "tools/views/export/row.h"

namespace oomrec::tools::commands {
namespace {

// The bundles of a dump directory, the oldest first, after those of its orphans are written; empty
// if it is none.
std::vector<std::string> bundles_of(const std::string& named, views::RowWriter& rows) {
  std::error_code error;
  if (!std::filesystem::is_directory(named, error) || bundles::is_bundle(named)) return {};
  const std::filesystem::path directory = bundles::absolute_directory(named);
  bundles::recover_orphans({directory});
  std::vector<std::string> paths;
  for (const bundles::BundleSummary& bundle : rows.bundles_in(directory))
    paths.insert(paths.begin(), bundle.path.string());
  return paths;
}

}  // namespace

int export_rows(const bundles::ReadOptions& options, const std::vector<std::string>& named,
                views::Output& output) {
  views::RowWriter rows;
  std::vector<std::string> all;
  if (named.empty()) all.emplace_back();  // the newest
  for (const std::string& name : named) {
    const std::vector<std::string> bundles = bundles_of(name, rows);
    if (bundles.empty()) all.push_back(name);
    all.insert(all.end(), bundles.begin(), bundles.end());
  }
  const auto write = [&](const bundles::Source& source) {
    output.write(rows.line_of(source) + "\n");
  };
  const auto write_bundle = [&](const std::string& bundle) {
    const bundles::Source source = options.open(bundle);
    if (!source.is_job()) return write(source);
    bundles::for_each_rank(source, [&](const Json&, const bundles::Source& rank) { write(rank); });
  };
  if (all.size() == 1) {
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
