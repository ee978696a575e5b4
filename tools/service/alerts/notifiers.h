// How alerts are brought to somebody: by a command of the user's, or to a URL.
#pragma once

#include <string>

#include "tools/service/alerts/notifier_processes.h"

namespace oomrec::tools::service {

// `command` is run by sh.
Courier command_courier(const std::string& command);

// POST of the alert to http://…, or by curl to https://…. Throws Error with bad_input where it is
// no such URL, or there is no curl.
Courier webhook_courier(const std::string& url);

struct HttpUrl {
  std::string host, port, path;
};
HttpUrl http_url_in(const std::string& url);  // throws as above

}  // namespace oomrec::tools::service
