// Who waits along with the watcher, which sleeps in one poll for all of them: a server's sockets, a
// file that is due, commands that run.
#pragma once

#include <poll.h>

#include <chrono>
#include <optional>
#include <span>
#include <vector>

namespace oomrec::tools::service {

class Attendant {
 public:
  using Clock = std::chrono::steady_clock;

  Attendant() = default;
  virtual ~Attendant() = default;
  Attendant(const Attendant&) = delete;
  Attendant& operator=(const Attendant&) = delete;

  // Adds what is to be polled.
  virtual void add_polled(std::vector<pollfd>&) const {}

  // When it has something to do whatever is polled; nothing: never.
  virtual std::optional<Clock::time_point> wakes_at() const = 0;

  // After each poll, with what it added and in that order. Must not block.
  virtual void attend(std::span<const pollfd>) = 0;
};

}  // namespace oomrec::tools::service
