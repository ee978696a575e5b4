// The ways to deliver an alert: a user's command, or a POST to a URL.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "tools/service/alerts/notifier_processes.h"

namespace oomrec::tools::service {

// Runs `command` with sh, with these variables in addition to ours.
using Environment = std::vector<std::pair<std::string, std::string>>;
Notifier command_notifier(const std::string& command, const Environment& environment = {});

// Posts the alert to an http:// URL, or with curl to an https:// URL. Throws Error with bad_input
// for any other URL, or if curl is missing.
Notifier webhook_notifier(const std::string& url);

struct HttpUrl {
  std::string host, port, path;
};
HttpUrl http_url_in(const std::string& url);  // throws as above

}  // namespace oomrec::tools::service
