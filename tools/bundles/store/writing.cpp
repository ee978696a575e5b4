#include "tools/bundles/store/writing.h"

#include <fmt/format.h>

#include <csignal>
#include <cstdlib>
#include <cstring>
#include <memory>

#include "tools/base/text.h"

namespace oomrec::tools::bundles {
namespace {

std::uint64_t count_setting(const char* variable, std::uint64_t standard) {
  const char* text = std::getenv(variable);
  return text != nullptr && *text != '\0' ? std::strtoull(text, nullptr, 10) : standard;
}

}  // namespace

Written write_bundle(const recording::Recording& recording, bundle::Cause cause,
                     const std::string& directory) {
  const std::string beside = recording.path().parent_path();
  cause.session_directory = beside.c_str();
  bundle::Destination destination{directory.c_str()};
  destination.max_dumps = count_setting("OOMREC_MAX_DUMPS", destination.max_dumps);
  destination.max_total_bytes =
      count_setting("OOMREC_MAX_TOTAL_MB", destination.max_total_bytes >> 20) << 20;

  std::signal(SIGXFSZ, SIG_IGN);  // a limit on the size of files is an error, not our death
  const auto workspace = std::make_unique<bundle::Workspace>();
  int error = 0;
  if (bundle::write(OutsideHooks::in_hook(), recording.view(), cause, destination, *workspace,
                    error) == bundle::Result::written)
    return {workspace->path, workspace->verdict.summary, ""};
  return {{},
          "",
          fmt::format("no bundle could be written to {}: {}", printable(directory),
                      std::strerror(error))};
}

}  // namespace oomrec::tools::bundles
