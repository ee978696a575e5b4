#include "tools/recording/live/session.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <fstream>

#include "common/system/files.h"
#include "tools/deaths/ending.h"

namespace oomrec::tools::recording {
namespace {

constexpr std::size_t kMostMoments = 4096;  // beyond it, every second of the older half is dropped

}  // namespace

LiveSession::LiveSession(LiveProcess process, std::shared_ptr<const CacheDirectory> cache)
    : process_(std::move(process)),
      locations_(*process_.recording, process_.symbols, std::move(cache)),
      stacks_(*process_.recording, locations_),
      timeline_(timeline_of(*process_.recording)),
      ended_(!process_.ending.empty()) {
  sample();
}

bool LiveSession::sample() {
  if (ended_) return false;
  ended_ = session::life_of(recording().view()) == session::Life::dead;
  if (!ended_) look_at_pages();
  add_moment();
  return !ended_;
}

void LiveSession::look_at_pages() {
  constexpr std::uint64_t kPartOfTime = 50;
  const std::uint64_t now = system::monotonic_ns();
  if (now < next_look_ns_) return;
  process_.recording->look_at_pages(process_.pid);
  next_look_ns_ = now + kPartOfTime * (system::monotonic_ns() - now);
}

void LiveSession::add_moment() {
  Timeline now = timeline_of(recording());
  timeline_.marks = std::move(now.marks);
  timeline_.failures = std::move(now.failures);
  timeline_.limits = std::move(now.limits);
  Moment& moment = now.moments.back();
  if (!ended_) {
    moment.time_ns = system::monotonic_ns();
    if (const std::uint64_t rss = resident_bytes(process_.pid)) moment.rss_bytes = rss;
  }
  std::vector<Moment>& moments = timeline_.moments;
  if (moment.time_ns >= moments.back().time_ns) moments.push_back(std::move(moment));
  if (moments.size() <= kMostMoments) return;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < moments.size(); ++i)
    if (i >= kMostMoments / 2 || i % 2 == 0) moments[kept++] = std::move(moments[i]);
  moments.resize(kept);
}

std::uint64_t LiveSession::elapsed_ns() const {
  const std::uint64_t start = recording().header().start_monotonic_ns;
  const std::uint64_t last = timeline_.moments.back().time_ns;
  return last > start ? last - start : 0;
}

bool LiveSession::replaced() const {
  return ended_ &&
         recording().header().state == static_cast<std::uint32_t>(session::State::replaced);
}

std::string LiveSession::ending() const {
  if (!process_.ending.empty()) return process_.ending;
  if (replaced()) return "became another program (exec)";
  const deaths::Ending ending = deaths::ending_of(recording().view(), {});
  switch (ending.outcome) {
    case OutcomeKind::recovered:
    case OutcomeKind::exited:
      return fmt::format("exited with code {}", ending.value);
    case OutcomeKind::signal:
      return fmt::format("was ended by signal {} ({})", ending.value, strsignal(ending.value));
    case OutcomeKind::oom_killed:
      return "was killed by the kernel for lack of memory";
    default:
      return "was killed by an unknown sender";
  }
}

}  // namespace oomrec::tools::recording
