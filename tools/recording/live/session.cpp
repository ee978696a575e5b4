#include "tools/recording/live/session.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cstring>

#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/descriptor.h"
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

WritableSession::WritableSession(const std::filesystem::path& path) {
  const Descriptor file = open(path.c_str(), O_RDWR | O_NOFOLLOW | O_CLOEXEC);
  struct stat status {};
  if (file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode)) {
    bytes_ = static_cast<std::size_t>(status.st_size);
    void* const memory = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (memory != MAP_FAILED) memory_ = static_cast<std::byte*>(memory);
  }
  if (memory_ != nullptr) view_ = session::View{session::Bytes::contiguous(memory_, bytes_)};
}

WritableSession::~WritableSession() {
  if (memory_ != nullptr) munmap(memory_, bytes_);
}

void enter_information(session::EndLevels& levels, const Information& information) {
  system::Text line{levels.user_killer_line};
  line << information.informant;
  if (!information.text.empty()) line << ": " << information.text;
  levels.user_killer = static_cast<std::uint32_t>(
      information.is_memory ? session::UserKiller::informant : session::UserKiller::other_reason);
}

bool enter_information(const std::filesystem::path& session, const Information& information) {
  WritableSession open{session};
  if (!open.is_open()) return false;
  enter_information(open.header().end_levels, information);
  open.header().told_realtime_ns.store(system::realtime_ns(), std::memory_order_release);
  return true;
}

}  // namespace oomrec::tools::recording
