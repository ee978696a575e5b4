// Runs notifiers in child processes, which get the alert on their standard input. Bounds their
// number and run time.
#pragma once

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tools/service/fleet/child_process.h"
#include "tools/service/fleet/poll_client.h"

namespace oomrec::tools::service {

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

}  // namespace oomrec::tools::service
