#include "tools/service/ship/archive.h"

#include <fmt/format.h>

#include "tools/base/error.h"
#include "tools/base/programs.h"
#include "tools/base/text.h"
#include "tools/bundles/redact/bundle.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;

void run(const std::vector<std::string>& words) {
  const ProgramResult result = run_program(words);
  if (result.exit_code != 0)
    throw Error{Exit::bad_input, fmt::format("{}: exit code {}", words.front(), result.exit_code),
                "Check the free space of TMPDIR."};
}

}  // namespace

std::string archive_suffix() {
  if (is_in_path("tar") && is_in_path("zstd")) return "tar.zst";
  if (is_in_path("tar") && is_in_path("gzip")) return "tar.gz";
  throw Error{Exit::bad_input, "bundles are shipped as archives, and tar or gzip is not in PATH",
              "Install tar and zstd, or ship rows only: --ship-raw 0"};
}

fs::path write_archive(const bundles::Source& source, const fs::path& directory,
                       const std::string& suffix) {
  const std::string name = source.bundle.filename();
  const std::string archive = (directory / name).string() + ".tar";
  bundles::write_redacted(source, directory / name);
  run({"tar", "-C", directory.string(), "-cf", archive, name});
  if (suffix == "tar.zst")
    run({"zstd", "-q", "-f", archive, "-o", archive + ".zst"});
  else
    run({"gzip", "-n", "-f", archive});
  return directory / fmt::format("{}.{}", name, suffix);
}

}  // namespace oomrec::tools::service
