#include "tools/service/watch/poll_set.h"

#include <algorithm>

namespace oomrec::tools::service {

PollSet::Slot PollSet::add(int descriptor, short events) {
  polled_.push_back({descriptor, events, 0});
  return static_cast<Slot>(polled_.size() - 1);
}

PollSet::Range PollSet::add(const PollClient& client) {
  const std::size_t begin = polled_.size();
  client.add_descriptors(polled_);
  return {begin, polled_.size()};
}

void PollSet::wait(std::chrono::milliseconds timeout) {
  const auto positive = std::max(timeout, std::chrono::milliseconds{0});
  poll(polled_.data(), polled_.size(), static_cast<int>(positive.count()));
}

std::span<const pollfd> PollSet::of(Range range) const {
  return std::span{polled_}.subspan(range.begin, range.end - range.begin);
}

}  // namespace oomrec::tools::service
