#include "tools/service/ship/options.h"

#include "tools/service/ship/archive.h"

namespace oomrec::tools::service {

void ShipOptions::add_to(Arguments& arguments, const std::string& timeout) {
  arguments.option("--ship", "URL", url,
                   "send a row of each bundle, and redacted bundles, to s3://BUCKET/PREFIX (by "
                   "curl, with the key in AWS_*), https://…{name}…, file:///DIR, or the URL in "
                   "@FILE");
  arguments.option("--ship-exec", "COMMAND", command,
                   "send them by COMMAND, run by sh; $1 or OOMREC_SHIP_FILE: the file, $2 or "
                   "OOMREC_SHIP_NAME: its name");
  arguments.option("--ship-raw", "N", raw_bundles,
                   "send at most N bundles of one signature a day (3); 0: only rows");
  arguments.option("--ship-timeout", "SECONDS", timeout_s, timeout);
}

void ShipOptions::check(const Arguments& arguments) const {
  if (!url.empty() && !command.empty())
    throw Error{Exit::bad_input, "--ship and --ship-exec cannot both be given",
                "Choose one of them."};
  for (const char* const name : {"--ship-raw", "--ship-timeout"})
    if (arguments.given(name) && !wants_any())
      throw Error{Exit::bad_input, std::string{name} + " needs a way to ship bundles",
                  "Add --ship or --ship-exec."};
  if (wants_any() && raw_bundles != 0) archive_suffix();
}

ShipSettings ShipOptions::settings() const {
  return {url.empty() ? put_by_command(command) : put_to_url(url), raw_bundles};
}

}  // namespace oomrec::tools::service
