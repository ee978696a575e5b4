// How the watcher serves others: it notifies listeners, and its poll loop has clients.
#pragma once

#include <poll.h>

#include <chrono>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "tools/bundles/recover/orphans.h"

namespace oomrec::tools::service {

class Listener {
 public:
  Listener() = default;
  virtual ~Listener() = default;
  Listener(const Listener&) = delete;
  Listener& operator=(const Listener&) = delete;

  // A new recording was found. Its file still exists, even if its process is dead already.
  virtual void on_found(const bundles::Session&, bool same_pid_namespace) = 0;

  // The process is gone. `recovered`: what recovery did with the recording; null: the process
  // deleted it itself.
  virtual void on_gone(const std::filesystem::path& recording,
                       const bundles::RecoveryResult* recovered) = 0;

  // The machine is under memory pressure. `recording`: of the largest process. `bundle`: of that
  // process; empty if none was written this time.
  virtual void on_memory_pressure(const std::filesystem::path& recording,
                                  const std::filesystem::path& bundle) = 0;

  // The watcher has scanned the directories: there may be new bundles.
  virtual void on_scan() = 0;
};

// A client of the watcher's poll loop, which serves all of them: server sockets, a file with a
// schedule, running commands.
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
