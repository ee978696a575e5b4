#include "tools/service/watch/watcher.h"

#include <poll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "common/session/directories.h"
#include "tools/base/directory.h"
#include "tools/base/error.h"
#include "tools/base/terminal.h"
#include "tools/bundles/store/outcome.h"
#include "tools/processes/gpus/gpu_processes.h"
#include "tools/recording/reading/recording.h"

namespace oomrec::tools::service {
namespace {

namespace fs = std::filesystem;
using namespace std::chrono_literals;

constexpr std::chrono::milliseconds kBetweenScans = 10s;     // in case inotify missed a file
constexpr std::chrono::milliseconds kBetweenChecks = 500ms;  // of what the kernel does not report
// The time that a new file normally takes to become a session. On a busy machine it takes longer:
// kRescans.
constexpr auto kSessionSetupTime = 50ms;
constexpr std::chrono::milliseconds kBetweenRescans = 300ms;
constexpr std::size_t kSamplesAtOnce = 12;  // 50 µs each, twice a second
// Hundreds of processes may end at once, at tens of milliseconds each: a scrape waits no longer.
constexpr auto kLongestOfDeaths = 500ms;
// A pod that is stopped ends all its processes at once.
constexpr auto kLongestAtStop = 5s;
constexpr unsigned kRescans = 5;

bool is_alive(const bundles::Session& session) {
  try {
    return session::life_of(recording::Recording{session.path}.view()) == session::Life::alive;
  } catch (const Error&) {
    return false;  // deleted by its own process
  }
}

}  // namespace

Watcher::Watcher(WatchedDirectories directories, const Report& report,
                 bundles::OnOomCommand on_oom_exec, EveryDeath every_death)
    : directories_(std::move(directories)),
      start_ns_(bundles::realtime_now_ns()),
      every_death_(every_death),
      finalizer_(report, std::move(on_oom_exec), listeners_),
      pressure_bundles_(report, listeners_),
      bundle_directories_(directories_.dumps.begin(), directories_.dumps.end()) {}

unsigned Watcher::finalize_once() {
  unsigned made = 0;
  for (const bundles::Session& session : directories_.sessions()) {
    if (session.alive) continue;
    if (finalizer_.finalize_dead_process(session, {}, bundles::UnknownEnds::leave).has_bundle())
      ++made;
  }
  return made;
}

void Watcher::run() {
  sigset_t stop_signals;
  sigemptyset(&stop_signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&stop_signals, signal);
  sigprocmask(SIG_BLOCK, &stop_signals, nullptr);
  const int stop = signalfd(-1, &stop_signals, SFD_CLOEXEC);
  if (!ProcessEnd::has_wait_status())
    exits_.emplace([this](pid_t process) { return awaits_exit_of(process); });
  scan(kRescans);
  is_starting_ = false;
  while (handle_next(stop)) continue;
  close(stop);
}

// --- events --------------------------------------------------------------------------------------

Watcher::Polled Watcher::wait(int stop) {
  Polled polled;
  polled.stop = polled.set.add(stop, POLLIN);
  polled.new_files = polled.set.add(new_files_.descriptor(), POLLIN);
  polled.pressure = polled.set.add(pressure_.descriptor(), pressure_.events());
  polled.exits = polled.set.add(exits_ ? exits_->descriptor() : -1, POLLIN);
  for (const auto& [path, process] : recorded_)
    polled.processes.emplace_back(&process, polled.set.add(process.end.descriptor(), POLLIN));
  for (const PollClient* const client : clients_) polled.clients.push_back(polled.set.add(*client));
  polled.set.wait(std::chrono::ceil<std::chrono::milliseconds>(wake_time() - Clock::now()));
  return polled;
}

// The latest time to wake up, even without an event.
Watcher::Clock::time_point Watcher::wake_time() const {
  Clock::time_point time = next_scan_;
  if (pressure_.descriptor() < 0 || !recorded_.empty()) time = std::min(time, next_check_);
  for (const PollClient* const client : clients_)
    time = std::min(time, client->wake_time().value_or(time));
  return time;
}

bool Watcher::handle_next(int stop) {
  const Polled polled = wait(stop);
  const bool is_stopped = polled.set.is_ready(polled.stop);
  // Checks twice a second what the kernel does not report, even if other events come more often.
  const bool check_due = Clock::now() >= next_check_;
  if (check_due) next_check_ = Clock::now() + kBetweenChecks;
  handle_exits(polled);
  if (is_stopped) {
    finalize_last(stop);
    return false;
  }
  handle_deaths(polled, check_due);
  if (check_due) sample_levels();
  handle_pressure(polled, check_due);
  handle_new_files(polled);
  handle_clients(polled);
  return true;
}

void Watcher::handle_exits(const Polled& polled) {
  if (polled.set.is_ready(polled.exits)) exits_->read_events();
}

void Watcher::handle_deaths(const Polled& polled, bool check_due) {
  const std::set<fs::path> dead = dead_processes(polled, check_due);
  if (!dead.empty()) finalize(dead, kLongestOfDeaths);
}

// Processes that have ended just before have their bundles, also those that were never scanned.
void Watcher::finalize_last(int stop) {
  update_recorded();
  const Polled polled = wait(stop);  // returns at once: nobody has read the signal
  finalize(dead_processes(polled, true), kLongestAtStop);
}

void Watcher::handle_pressure(const Polled& polled, bool check_due) {
  if (polled.set.is_ready(polled.pressure)) {
    pressure_.acknowledge();
    pressure_bundles_.on_pressure(recorded_);
  } else if (pressure_.descriptor() < 0 && check_due && pressure_.is_high()) {
    pressure_bundles_.on_pressure(recorded_);
  }
}

void Watcher::handle_new_files(const Polled& polled) {
  if (polled.set.is_ready(polled.new_files) && new_files_.read_events()) {
    rescans_ = kRescans;
    next_scan_ = std::min(next_scan_, Clock::now() + kSessionSetupTime);
  }
  if (Clock::now() >= next_scan_) scan(rescans_);
}

void Watcher::handle_clients(const Polled& polled) {
  for (std::size_t i = 0; i < clients_.size(); ++i)
    clients_[i]->on_poll(polled.set.of(polled.clients[i]));
}

// --- recordings ----------------------------------------------------------------------------------

// `rescans`: the number of scans that follow soon, while there is an unfinished session.
void Watcher::scan(unsigned rescans) {
  update_recorded();
  add_gpu_processes();
  listeners_.on_scan();
  rescans_ = rescans != 0 && has_unfinished_session() ? rescans - 1 : 0;
  next_scan_ = Clock::now() + (rescans_ != 0 ? kBetweenRescans : kBetweenScans);
}

// Adds new recordings, forgets deleted ones, and returns all sessions.
std::vector<bundles::Session> Watcher::update_recorded() {
  for (const fs::path& directory : directories_.of_sessions()) new_files_.watch(directory);
  std::vector<bundles::Session> sessions = directories_.sessions();
  forget_gone(sessions);
  for (const bundles::Session& session : sessions)
    if (!recorded_.contains(session.path) && !left_.contains(session.path)) add(session);
  for (const fs::path& directory : bundle_directories_) new_files_.watch(directory);
  return sessions;
}

void Watcher::forget_gone(const std::vector<bundles::Session>& sessions) {
  std::erase_if(recorded_, [&](const auto& entry) {
    const bool exists = std::ranges::any_of(
        sessions, [&](const bundles::Session& session) { return session.path == entry.first; });
    if (exists) return false;
    if (lives_) lives_->on_end(entry.first);
    listeners_.on_gone(entry.first, nullptr);
    return true;
  });
}

void Watcher::add(const bundles::Session& session) try {
  const recording::Recording recording{session.path};
  const session::Header& header = recording.header();
  RecordedProcess process{session, session.alive ? ProcessEnd::of(header) : ProcessEnd{}, {}};
  if (fs::path directory = recording.text(header.dump_directory); !directory.empty())
    bundle_directories_.insert(std::move(directory));
  listeners_.on_found(session, process.same_pid_namespace());
  if (session.alive && lives_) lives_->add(session);
  if (session.alive)
    recorded_.emplace(session.path, std::move(process));
  else
    finalize_found_dead(session);
} catch (const Error&) {
  return;  // deleted by its own process meanwhile
}

void Watcher::finalize_found_dead(const bundles::Session& session) {
  const auto unknown =
      is_starting_ && every_death_ == EveryDeath::no ? bundles::UnknownEnds::leave : unknown_ends();
  const bundles::RecoveryResult recovered = finalizer_.finalize_dead_process(session, {}, unknown);
  if (recovered.action == bundles::RecoveryAction::unseen) left_.insert(session.path);
}

// Whether there is a file that is not a session yet, or never will be.
bool Watcher::has_unfinished_session() const {
  for (const fs::path& directory : directories_.of_sessions())
    for (const fs::path& path : entries_of(directory))
      if (path.extension() == session::kFileSuffix && !recorded_.contains(path) &&
          !left_.contains(path))
        return true;
  return false;
}

// Adds the GPUs' processes to the bundles written since the watch began. Calls NVML only if one of
// them is about a GPU.
void Watcher::add_gpu_processes() const try {
  processes::write_gpu_processes({bundle_directories_.begin(), bundle_directories_.end()},
                                 start_ns_);
} catch (const std::exception& error) {
  remark(error.what());
}

// --- deaths --------------------------------------------------------------------------------------

std::set<fs::path> Watcher::dead_processes(const Polled& polled, bool check_due) const {
  std::set<fs::path> dead;
  for (const auto& [process, end] : polled.processes) {
    const bool is_dead = process->same_pid_namespace() ? polled.set.is_ready(end)
                                                       : check_due && !is_alive(process->session);
    if (is_dead) dead.insert(process->session.path);
  }
  return dead;
}

// In this order: dead processes whose sessions were not known yet (in update_recorded()), workers,
// their parents. Those that are left when the time is up stay ready for the next poll.
void Watcher::finalize(const std::set<fs::path>& dead, Clock::duration longest) {
  const std::vector<bundles::Session> sessions = update_recorded();
  const Clock::time_point deadline = Clock::now() + longest;
  for (const bundles::Session& session : sessions) {
    if (!dead.contains(session.path)) continue;
    const auto process = recorded_.find(session.path);
    const deaths::DeathObservation observed = observation_of(process->second);
    if (lives_) lives_->on_end(session.path, observed.wait_status);
    finalizer_.finalize_dead_process(process->second.session, observed, unknown_ends());
    recorded_.erase(process);
    if (Clock::now() >= deadline) return;
  }
}

bool Watcher::awaits_exit_of(pid_t process) const {
  return std::ranges::any_of(recorded_, [&](const auto& entry) {
    const RecordedProcess& recorded = entry.second;
    return recorded.same_pid_namespace() && recorded.session.pid == process;
  });
}

std::optional<int> Watcher::wait_status(const RecordedProcess& dead) {
  if (!dead.same_pid_namespace()) return {};
  if (exits_)
    if (const auto status = exits_->wait_status(static_cast<pid_t>(dead.session.pid)))
      return status;
  return dead.end.wait_status();
}

// What the kernel no longer knows after the end, and what it says then.
deaths::DeathObservation Watcher::observation_of(const RecordedProcess& dead) {
  deaths::DeathObservation observed;
  observed.wait_status = wait_status(dead);
  observed.levels = dead.levels.at_end(nullptr);
  observed.cgroup = dead.levels.cgroup();
  observed.was_there = !observed.cgroup.directory.empty();
  observed.kills_before = dead.levels.kills_before();
  return observed;
}

// The next few processes in turn: many would cost too much at once.
void Watcher::sample_levels() {
  auto next = recorded_.upper_bound(last_sampled_);
  for (std::size_t count = std::min(recorded_.size(), kSamplesAtOnce); count != 0; --count) {
    if (next == recorded_.end()) next = recorded_.begin();
    if (next->second.same_pid_namespace()) {
      next->second.levels.sample(static_cast<pid_t>(next->second.session.pid));
      if (lives_) lives_->sample(next->first);
    }
    last_sampled_ = next++->first;
  }
}

}  // namespace oomrec::tools::service
