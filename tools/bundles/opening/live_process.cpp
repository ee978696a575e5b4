#include "tools/bundles/opening/live_process.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>
#include <vector>

#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/orphans.h"
#include "tools/bundles/store/bundles.h"

namespace oomrec::tools::bundles {

void require_not_ended(const std::string& argument) {
  const std::optional<pid_t> pid = recording::parse_pid(argument);
  if (!pid || system::start_ticks(*pid) != 0) return;
  const std::vector<std::filesystem::path> directories = dump_directories();
  recover_orphans(directories);
  const std::vector<BundleSummary> bundles = bundles_in(directories);
  const auto newest = std::find_if(
      bundles.begin(), bundles.end(),
      [&](const BundleSummary& bundle) { return bundle.pid == static_cast<std::uint64_t>(*pid); });
  if (newest == bundles.end()) return;
  throw Error{
      Exit::nothing_found, fmt::format("process {} has ended", *pid),
      fmt::format("Its newest bundle, of {}: oomrec show {}", printable(newest->created_at_utc),
                  shell_word(printable(newest->path.string())))};
}

recording::LiveProcess find_live_process(const std::string& argument) {
  try {
    return recording::find_live_process(argument);
  } catch (const Error& error) {
    if (error.code() == Exit::nothing_found) require_not_ended(argument);
    throw;
  }
}

}  // namespace oomrec::tools::bundles
