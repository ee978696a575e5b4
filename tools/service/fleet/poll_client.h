// A client of the watcher's poll loop, which serves all of them: server sockets, a file with a
// schedule, running commands.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <span>
#include <vector>

namespace oomrec::tools::service {

class PollClient {
 public:
  using Clock = std::chrono::steady_clock;

  PollClient() = default;
  virtual ~PollClient() = default;
  PollClient(const PollClient&) = delete;
  PollClient& operator=(const PollClient&) = delete;

  // Adds the descriptors to poll.
  virtual void add_descriptors(std::vector<pollfd>&) const {}

  // When to call on_poll() even if no descriptor is ready; empty: never.
  virtual std::optional<Clock::time_point> wake_time() const = 0;

  // Called after each poll with the descriptors that add_descriptors() added, in that order. Must
  // not block.
  virtual void on_poll(std::span<const pollfd>) = 0;
};

}  // namespace oomrec::tools::service
