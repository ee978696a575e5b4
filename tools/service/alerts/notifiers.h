// The ways to deliver an alert, a user's command or a POST to a URL, and the child processes
// that do so.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "tools/service/fleet/child_process.h"
#include "tools/service/fleet/listener.h"

namespace oomrec::tools::service {

// Runs notifiers in child processes, which get the alert on their standard input. Bounds their
// number and run time.

// A way to deliver alerts. `work` runs in the child, and returns its exit code.
struct Notifier {
  std::string name;  // "--alert-exec", for messages
  std::chrono::seconds timeout;
  std::function<int()> work;
};

class NotifierProcesses : public PollClient {
 public:
  // `notifier` must outlive this object.
  void add(const Notifier& notifier, std::string text);

  void add_descriptors(std::vector<pollfd>&) const override;
  std::optional<Clock::time_point> wake_time() const override;
  void on_poll(std::span<const pollfd>) override;

 private:
  struct Running {
    const Notifier* notifier;
    ChildProcess child;
  };
  void start_waiting();
  bool start(const Notifier& notifier, const std::string& text);
  static bool has_ended(Running& running);

  std::deque<std::pair<const Notifier*, std::string>> waiting_;
  std::vector<Running> running_;
};

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
