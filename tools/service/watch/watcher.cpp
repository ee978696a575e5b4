#include "tools/service/watch/watcher.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <memory>

#include "common/session/directories.h"
#include "tools/base/error.h"
#include "tools/base/log.h"
#include "tools/base/text.h"
#include "tools/bundles/recover/on_oom.h"
#include "tools/bundles/store/bundles.h"
#include "tools/bundles/store/outcome.h"
#include "tools/bundles/store/writing.h"
#include "tools/deaths/present.h"
#include "tools/processes/gpus/gpu_processes.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::service {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kLookForNew = 10s;      // what inotify may have missed
constexpr std::chrono::milliseconds kLookForDeath = 500ms;  // of processes that cannot be polled
constexpr auto kBetweenWarnings = 5min;                     // of the same process
constexpr auto kBetweenPressureLooks = 10s;  // for the largest process, while memory is short
// A file that has just begun is not yet a recording; on a busy machine it may take its time.
constexpr auto kUntilASession = 50ms;
constexpr std::chrono::milliseconds kLookAgain = 300ms;
constexpr unsigned kLooksAgain = 5;

bool is_alive(const bundles::Session& session) {
  try {
    return session::life_of(recording::Recording{session.path}.view()) == session::Life::alive;
  } catch (const Error&) {
    return false;  // removed by its own process
  }
}

}  // namespace

Watcher::Watcher(std::vector<std::filesystem::path> dump_directories,
                 std::function<void(const std::string&)> tell, std::string on_oom_exec)
    : dump_directories_(std::move(dump_directories)),
      tell_(std::move(tell)),
      on_oom_exec_(std::move(on_oom_exec)),
      began_ns_(bundles::realtime_now_ns()),
      dumps_(dump_directories_.begin(), dump_directories_.end()),
      changes_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)) {}

Watcher::~Watcher() {
  if (changes_ >= 0) close(changes_);
}

// Where the directory is yet to be made, its making is waited for. What was made before that watch
// began, nothing would tell of: then it is tried again.
void Watcher::watch_for_new(const std::filesystem::path& directory) {
  if (changes_ < 0) return;
  constexpr std::uint32_t kNew = IN_CREATE | IN_MOVED_TO | IN_MASK_ADD;
  for (bool made_meanwhile = true; made_meanwhile;) {
    std::string awaited;  // in there: any file
    std::filesystem::path there = directory;
    int watch = inotify_add_watch(changes_, there.c_str(), kNew);
    while (watch < 0 && errno == ENOENT && there.has_relative_path()) {
      awaited = there.filename();
      there = there.parent_path();
      watch = inotify_add_watch(changes_, there.c_str(), kNew);
    }
    if (watch < 0) return;
    awaited_[watch].insert(awaited);
    std::error_code error;
    made_meanwhile = !awaited.empty() && std::filesystem::exists(there / awaited, error);
  }
}

// Whether one of the changes is one that was waited for.
bool Watcher::take_changes() {
  alignas(inotify_event) char events[4096];
  bool any = false;
  for (ssize_t bytes = 0; (bytes = read(changes_, events, sizeof events)) > 0;) {
    for (const char* at = events; at < events + bytes;) {
      const auto* const event = reinterpret_cast<const inotify_event*>(at);
      const std::set<std::string>& awaited = awaited_[event->wd];
      any = any || awaited.contains("") || (event->len != 0 && awaited.contains(event->name));
      at += sizeof(inotify_event) + event->len;
    }
  }
  return any;
}

// Those that are new, and those that are gone. All that there were.
std::vector<bundles::Session> Watcher::find() {
  for (const std::filesystem::path& directory : bundles::session_directories(dump_directories_))
    watch_for_new(directory);
  std::vector<bundles::Session> sessions = bundles::sessions_of(dump_directories_);
  std::erase_if(recorded_, [&](const auto& entry) {
    const bool there =
        std::any_of(sessions.begin(), sessions.end(),
                    [&](const bundles::Session& session) { return session.path == entry.first; });
    if (!there) tell_end(entry.first, nullptr);
    return !there;
  });
  for (const bundles::Session& session : sessions) {
    if (recorded_.contains(session.path)) continue;
    try {
      const recording::Recording recording{session.path};
      const session::Header& header = recording.header();
      Recorded recorded{session, session.alive ? ProcessEnd::of(header) : ProcessEnd{}};
      if (std::filesystem::path dumps = recording.text(header.dump_directory); !dumps.empty())
        dumps_.insert(std::move(dumps));
      for (Listener* const listener : listeners_)
        listener->began(session, recorded.end.descriptor() >= 0);
      session.alive ? void(recorded_.emplace(session.path, std::move(recorded)))
                    : void(bury(recorded, {}));
    } catch (const Error&) {
      continue;  // removed by its own process meanwhile
    }
  }
  for (const std::filesystem::path& directory : dumps_) watch_for_new(directory);
  return sessions;
}

// There is a file that is no recording yet, or never will be.
bool Watcher::has_begun_one() const {
  for (const std::filesystem::path& directory : bundles::session_directories(dump_directories_)) {
    std::error_code error;
    for (std::filesystem::directory_iterator at{directory, error}, end; !error && at != end;
         at.increment(error))
      if (at->path().extension() == session::kFileSuffix && !recorded_.contains(at->path()))
        return true;
  }
  return false;
}

// `again`: how many more times soon, should one have begun.
void Watcher::look(unsigned again) {
  find();
  tell_company_on_gpus();
  for (Listener* const listener : listeners_) listener->looked();
  looks_again_ = again != 0 && has_begun_one() ? again - 1 : 0;
  looks_at_ = Clock::now() + (looks_again_ != 0 ? kLookAgain : kLookForNew);
}

// 1 when a bundle came of it.
unsigned Watcher::bury(Recorded& dead, std::optional<int> wait_status) {
  dead.session.alive = false;
  bundles::Recovered recovered;
  try {
    deaths::Watched watched;
    watched.wait_status = wait_status;
    recovered = bundles::recover(dead.session, {}, watched);
    tell_end(dead.session.path, &recovered);
    if (!recovered.problem.empty()) remark(recovered.problem);
    if (recovered.what != bundles::Recovery::made && recovered.what != bundles::Recovery::completed)
      return 0;
    const bundles::BundleSummary bundle = bundles::summary_of(recovered.bundle);
    tell_(fmt::format("process {} ({}) is gone: {}, {}: {}", dead.session.pid,
                      printable(bundle.program), bundle.outcome, bundle.verdict,
                      printable(recovered.bundle.string())));
    if (!on_oom_exec_.empty() && bundles::is_kill_for_memory(recovered.bundle))
      bundles::run_on_oom(on_oom_exec_, recovered.bundle, false);
    return 1;
  } catch (const Error& error) {
    remark(error.what());
    return 0;
  }
}

void Watcher::tell_end(const std::filesystem::path& recording,
                       const bundles::Recovered* recovered) {
  for (Listener* const listener : listeners_) listener->ended(recording, recovered);
}

// Workers before their parents, and first of all those that died before we knew of them.
void Watcher::bury_all(const std::vector<std::filesystem::path>& dead) {
  for (const bundles::Session& session : find()) {
    if (std::find(dead.begin(), dead.end(), session.path) == dead.end()) continue;
    Recorded& recorded = recorded_.at(session.path);
    bury(recorded, wait_status(recorded));
  }
  for (const std::filesystem::path& path : dead) recorded_.erase(path);
}

unsigned Watcher::look_once() {
  unsigned made = 0;
  for (const bundles::Session& session : bundles::sessions_of(dump_directories_)) {
    Recorded recorded{session, {}};
    if (!session.alive) made += bury(recorded, {});
  }
  return made;
}

// The bundle is of the recorded process with the most resident memory: it may be the one that needs
// it, and it cannot say so itself while it does not allocate.
void Watcher::warn_of_pressure() {
  const auto now = Clock::now();
  if (looked_for_largest_ != Clock::time_point{} &&
      now - looked_for_largest_ < kBetweenPressureLooks)
    return;
  looked_for_largest_ = now;
  Recorded* largest = nullptr;
  std::unique_ptr<recording::Recording> recording;
  std::unique_ptr<session::Health> health;
  for (auto& [path, recorded] : recorded_) {
    auto candidate = std::make_unique<recording::Recording>(path);
    auto seen = deaths::present_health(candidate->view(), recorded.end.descriptor() >= 0);
    if (largest != nullptr && seen->rss_bytes <= health->rss_bytes) continue;
    largest = &recorded;
    recording = std::move(candidate);
    health = std::move(seen);
  }
  if (largest == nullptr) return;
  const auto tell_listeners = [&](const std::filesystem::path& bundle) {
    for (Listener* const listener : listeners_)
      listener->short_of_memory(largest->session.path, bundle);
  };
  if ((largest->warned != Clock::time_point{} && now - largest->warned < kBetweenWarnings))
    return tell_listeners({});
  largest->warned = now;
  const std::string directory = recording->text(recording->header().dump_directory);
  bundle::Cause cause;
  cause.trigger = Trigger::pressure;
  cause.health = health.get();
  const bundles::Written written = bundles::write_bundle(*recording, cause, directory);
  written.bundle.empty() ? remark(written.problem)
                         : tell_(fmt::format("process {}: {}: {}", largest->session.pid,
                                             written.summary, printable(written.bundle.string())));
  tell_listeners(written.bundle);
}

// In the bundles that came since we watch; NVML is asked only where there is one.
void Watcher::tell_company_on_gpus() const try {
  processes::tell_gpu_processes({dumps_.begin(), dumps_.end()}, began_ns_);
} catch (const std::exception& error) {
  remark(error.what());
}

bool Watcher::awaits(pid_t process) const {
  return std::any_of(recorded_.begin(), recorded_.end(), [&](const auto& entry) {
    const Recorded& recorded = entry.second;
    return recorded.end.descriptor() >= 0 && recorded.session.pid == process;
  });
}

// Where its pid means the same here.
std::optional<int> Watcher::wait_status(const Recorded& dead) {
  if (dead.end.descriptor() < 0) return {};
  return exits_ ? exits_->wait_status(static_cast<pid_t>(dead.session.pid))
                : dead.end.wait_status();
}

// When to look though nothing has happened.
Watcher::Clock::time_point Watcher::wakes_at() const {
  Clock::time_point at = looks_at_;
  const bool must_look = pressure_.descriptor() < 0 ||
                         std::any_of(recorded_.begin(), recorded_.end(), [](const auto& entry) {
                           return entry.second.end.descriptor() < 0;
                         });
  if (must_look) at = std::min(at, looks_for_death_at_);
  for (const Attendant* const attendant : attendants_)
    at = std::min(at, attendant->wakes_at().value_or(at));
  return at;
}

// `ends`: what was polled of the recorded processes. Those that cannot be polled are looked at
// twice a second, however often something else happens.
std::vector<std::filesystem::path> Watcher::dead_of(const std::vector<pollfd>& ends) {
  const bool looks = Clock::now() >= looks_for_death_at_;
  if (looks) looks_for_death_at_ = Clock::now() + kLookForDeath;
  std::vector<std::filesystem::path> dead;
  auto state = ends.begin();
  for (const auto& [path, recorded] : recorded_) {
    const bool is_dead =
        state->fd >= 0 ? state->revents != 0 : looks && !is_alive(recorded.session);
    if (is_dead) dead.push_back(path);
    ++state;
  }
  return dead;
}

// Waits for the next thing to happen and sees to it. False: we are to stop.
bool Watcher::wait(int signals) {
  std::vector<pollfd> polled = {{signals, POLLIN, 0},
                                {changes_, POLLIN, 0},
                                {pressure_.descriptor(), pressure_.events(), 0},
                                {exits_ ? exits_->descriptor() : -1, POLLIN, 0}};
  const auto ends_from = static_cast<std::ptrdiff_t>(polled.size());
  for (const auto& [path, recorded] : recorded_)
    polled.push_back({recorded.end.descriptor(), POLLIN, 0});
  std::vector<std::size_t> begins = {polled.size()};  // of each attendant's own
  for (const Attendant* const attendant : attendants_) {
    attendant->add_polled(polled);
    begins.push_back(polled.size());
  }
  const auto timeout =
      std::max(0ms, std::chrono::ceil<std::chrono::milliseconds>(wakes_at() - Clock::now()));
  poll(polled.data(), polled.size(), static_cast<int>(timeout.count()));
  if (polled[0].revents != 0) return false;
  if (polled[3].revents != 0) exits_->take();

  const bool looks_at_pressure = Clock::now() >= looks_for_death_at_;
  const auto dead = dead_of(
      {polled.begin() + ends_from, polled.begin() + static_cast<std::ptrdiff_t>(begins.front())});
  if (!dead.empty()) bury_all(dead);
  if (polled[2].revents != 0) {
    pressure_.take();
    warn_of_pressure();
  } else if (pressure_.descriptor() < 0 && looks_at_pressure && pressure_.is_high()) {
    warn_of_pressure();
  }
  if (polled[1].revents != 0 && take_changes()) {
    poll(nullptr, 0, static_cast<int>(std::chrono::milliseconds{kUntilASession}.count()));
    take_changes();
    look(kLooksAgain);
  } else if (Clock::now() >= looks_at_) {
    look(looks_again_);
  }
  for (std::size_t i = 0; i < attendants_.size(); ++i)
    attendants_[i]->attend(std::span{polled}.subspan(begins[i], begins[i + 1] - begins[i]));
  return true;
}

void Watcher::run() {
  sigset_t ends;
  sigemptyset(&ends);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&ends, signal);
  sigprocmask(SIG_BLOCK, &ends, nullptr);
  const int signals = signalfd(-1, &ends, SFD_CLOEXEC);
  if (!ProcessEnd::kernel_tells())
    exits_.emplace([this](pid_t process) { return awaits(process); });
  look(kLooksAgain);
  while (wait(signals)) continue;
  close(signals);
}

}  // namespace oomrec::tools::service
