#include "tools/bundles/store/writing.h"

#include <fmt/format.h>

#include <csignal>
#include <cstring>
#include <memory>

#include "common/text/text.h"
#include "tools/base/environment.h"
#include "tools/base/text.h"

namespace oomrec::tools::bundles {
namespace {

std::uint64_t number_from_environment(const char* variable, std::uint64_t standard) {
  return parse_number<std::uint64_t>(environment_variable(variable)).value_or(standard);
}

}  // namespace

Retention retention_from_environment() {
  const bundle::Destination standard{nullptr};
  return {number_from_environment("OOMREC_MAX_DUMPS", standard.max_dumps),
          number_from_environment("OOMREC_MAX_TOTAL_MB", standard.max_total_bytes >> 20) << 20};
}

WriteResult write_bundle(const recording::Recording& recording, bundle::Cause cause,
                         const std::string& directory, const Retention& retention) {
  const std::string beside = recording.path().parent_path();
  cause.session_directory = beside.c_str();
  bundle::Destination destination{directory.c_str()};
  destination.max_dumps = retention.max_dumps;
  destination.max_total_bytes = retention.max_total_bytes;

  std::signal(SIGXFSZ, SIG_IGN);  // exceeding RLIMIT_FSIZE is then an error, and does not kill us
  const auto workspace = std::make_unique<bundle::Workspace>();
  int error = 0;
  if (bundle::write(OutsideHooks::in_hook(), recording.view(), cause, destination, *workspace,
                    error) == bundle::Result::written)
    return {workspace->path, workspace->verdict.summary, ""};
  return {{},
          "",
          fmt::format("no bundle could be written to {}: {}; {}", printable(directory),
                      std::strerror(error),
                      text::error_advice(error, "set OOMREC_DUMP_DIR to another directory"))};
}

}  // namespace oomrec::tools::bundles
