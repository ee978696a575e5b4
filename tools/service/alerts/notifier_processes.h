// Commands that get an alert on their standard input: children with a bounded time, at most a few
// at once, and waited for without waiting.
#pragma once

#include <sys/types.h>

#include <deque>
#include <functional>
#include <string>
#include <vector>

#include "tools/service/fleet/poll_client.h"

namespace oomrec::tools::service {

// What is done in the child; its result is the child's exit code.
struct Courier {
  std::string name;  // "--alert-exec", in remarks
  std::chrono::seconds longest;
  std::function<int()> work;
};

class Deliveries : public Attendant {
 public:
  ~Deliveries() override;  // what still runs is left to go on

  // `courier` must outlive it.
  void add(const Courier& courier, std::string text);

  void add_polled(std::vector<pollfd>&) const override;
  std::optional<Clock::time_point> wakes_at() const override;
  void attend(std::span<const pollfd>) override;

 private:
  struct Running {
    const Courier* courier;
    pid_t child;
    int end;  // pidfd
    Clock::time_point ends;
    bool overdue = false;
  };
  void start_waiting();
  bool start(const Courier& courier, const std::string& text);
  static bool has_ended(Running& running);

  std::deque<std::pair<const Courier*, std::string>> waiting_;
  std::vector<Running> running_;
};

}  // namespace oomrec::tools::service
