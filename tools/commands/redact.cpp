// `oomrec redact`: copies a bundle without private data, to share.
#include <fmt/format.h>

#include <filesystem>
#include <string>

#include "tools/base/terminal.h"
#include "tools/base/text.h"
#include "tools/bundles/opening/options.h"
#include "tools/bundles/redact/bundle.h"
#include "tools/commands/commands.h"

namespace oomrec::tools::commands {
namespace {

constexpr const char* kRedactExamples =
    "  oomrec redact                                    the newest bundle, into NAME-redacted\n"
    "  oomrec redact oom_dumps/oom_cpu_20261121_101530_001 -o for-the-bug-report\n"
    "  oomrec show for-the-bug-report\n";

std::string default_name(const bundles::Source& source) {
  const std::filesystem::path& bundle = source.bundle;
  const std::filesystem::path folder = bundle.parent_path();
  std::string name = bundle.empty() ? source.recording->path().stem() : bundle.filename();
  if (folder.filename() == "ranks")  // JOB/ranks/3, of a merged bundle
    name = fmt::format("{}-rank-{}", folder.parent_path().filename().string(), name);
  return name + "-redacted";
}

}  // namespace

int redact_command(const Words& words) {
  Arguments arguments{"redact", "[OPTIONS] [BUNDLE]",
                      "Writes a copy of a bundle to share: without host, user, arguments, working "
                      "directory, environment, source lines and the user's own texts, with paths "
                      "shortened. Names of functions, libraries and threads stay. Its "
                      "redacted.json lists what was left out. Every command reads it.",
                      kRedactExamples};
  bundles::ReadOptions options;
  std::string directory;
  options.add_to(arguments);
  arguments.option("-o", "DIR", directory, "the new bundle (NAME-redacted); it must not exist yet");
  if (!arguments.parse(words)) return code(Exit::shown);

  const bundles::Source source = options.open();
  for (const std::string& problem : source.read_problems) remark(printable(problem));
  const std::filesystem::path to = directory.empty() ? default_name(source) : directory;
  source.is_job() ? bundles::write_redacted_job(source, to) : bundles::write_redacted(source, to);
  const std::string written = std::filesystem::absolute(to).lexically_normal().string();
  if (options.json)
    print_json({{"schema_version", 1}, {"bundle", written}});
  else
    fmt::print("{}\n", printable(written));
  return code(Exit::shown);
}

}  // namespace oomrec::tools::commands
