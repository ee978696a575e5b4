// The descriptors of one poll(). add() returns a handle to each.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <span>
#include <vector>

#include "tools/service/fleet/listener.h"

namespace oomrec::tools::service {

class PollSet {
 public:
  enum class Slot : std::size_t {};
  struct Range {
    std::size_t begin, end;
  };

  // A descriptor of −1 is never ready.
  Slot add(int descriptor, short events);
  Range add(const PollClient& client);

  void wait(std::chrono::milliseconds timeout);

  // Valid after wait().
  bool is_ready(Slot slot) const { return at(slot).revents != 0; }
  std::span<const pollfd> of(Range range) const;

 private:
  const pollfd& at(Slot slot) const { return polled_[static_cast<std::size_t>(slot)]; }

  std::vector<pollfd> polled_;
};

}  // namespace oomrec::tools::service
