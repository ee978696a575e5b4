// `oomrec redact`: a bundle that may be given away.
#include <fmt/format.h>

#include "tools/base/arguments.h"
#include "tools/base/json.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/open.h"
#include "tools/bundles/opening/options.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/bundles/redact/job.h"
#include "tools/commands/commands.h"
#include "tools/recording/symbolize/cache_directory.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kExamples =
    "  oomrec redact                                    the newest bundle, into NAME-redacted\n"
    "  oomrec redact oom_dumps/oom_cpu_20261121_101530_001 -o for-the-bug-report\n"
    "  oomrec show for-the-bug-report\n";

}  // namespace

int redact_command(const Words& words) {
  Arguments arguments{
      "redact", "[OPTIONS] [BUNDLE]",
      "Writes a bundle anew without host, user, arguments, working directory, environment, source "
      "lines and the words its user gave, with paths shortened; names of functions, libraries and "
      "threads stay. redacted.json in it lists what was left out. Every command reads it.",
      kExamples};
  std::string bundle, directory;
  bool json = false;
  arguments.positional("BUNDLE", bundle, bundles::kReadable);
  arguments.option("-o", "DIR", directory, "the new bundle (NAME-redacted); it must not be there");
  arguments.flag("--json", json, "print JSON (docs/json.md)");
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = bundles::open_source(bundle, recording::CacheDirectory::of_user());
  std::filesystem::path to = directory;
  if (to.empty()) {
    const std::filesystem::path from =
        source.bundle.empty() ? source.recording->path().stem() : source.bundle.filename();
    to = from.string() + "-redacted";
  }
  source.is_job() ? bundles::write_redacted_job(source, to) : bundles::write_redacted(source, to);
  const std::string written = std::filesystem::absolute(to).lexically_normal().string();
  if (json)
    print_json({{"schema_version", 1}, {"bundle", written}});
  else
    fmt::print("{}\n", printable(written));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
