// Watches every recorded process of a user from outside. Writes a bundle within a second of each
// death, and one of the largest process under memory pressure.
//
// It sleeps until something happens: a recording begins (inotify), a process ends (pidfd), memory
// is short (PSI), or a signal stops it. It polls twice a second only what the kernel does not
// report: processes of other pid namespaces, and pressure where PSI triggers are not available.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tools/bundles/recover/sessions.h"
#include "tools/service/fleet/listener.h"
#include "tools/service/fleet/lives.h"
#include "tools/service/fleet/new_bundles.h"
#include "tools/service/watch/exit_events.h"
#include "tools/service/watch/finalizer.h"
#include "tools/service/watch/new_files.h"
#include "tools/service/watch/poll_set.h"
#include "tools/service/watch/pressure.h"
#include "tools/service/watch/process_end.h"

namespace oomrec::tools::service {

// Whether a large process about whose end nothing is known has a bundle: it may have been killed
// while no watch ran, or the kernel does not say how it ended.
enum class EveryDeath : std::uint8_t {
  no,   // of those that have ended before the watch, the recordings stay for a day, as `oomrec
        // recover` leaves them. Later ones are removed: they could fill the memory that they are in
  yes,  // nothing that may have been a death is lost
};

class Watcher {
 public:
  using Clock = std::chrono::steady_clock;
  using Report = std::function<void(const std::string&)>;

  // `report` gets a line for each bundle. `on_oom_exec` runs after an OOM death (on_oom.h).
  Watcher(WatchedDirectories directories, const Report& report, bundles::OnOomCommand on_oom_exec,
          EveryDeath every_death = EveryDeath::no);

  // Writes rows of processes that end well. Call before run().
  void write_lives(Lives lives) { lives_ = std::move(lives); }

  // Call before run(). The objects must outlive the watcher.
  void add_listener(Listener& listener) { listeners_.add(listener); }
  void add_client(PollClient& client) { clients_.push_back(&client); }

  // Finalizes the processes that are dead now. Returns the number of their bundles.
  unsigned finalize_once();

  // Returns after SIGTERM, SIGINT or SIGHUP, which it blocks.
  void run();

 private:
  struct Polled {
    PollSet set;
    PollSet::Slot stop, new_files, pressure, exits;
    std::vector<std::pair<const RecordedProcess*, PollSet::Slot>> processes;
    std::vector<PollSet::Range> clients;  // in the order of `clients_`
  };
  Polled wait(int stop);
  Clock::time_point wake_time() const;

  bool handle_next(
      int stop);  // waits for events and handles all of them; false: stop was requested
  // Each handles one kind of event, if there was one.
  void handle_exits(const Polled& polled);
  void handle_deaths(const Polled& polled, bool check_due);
  void handle_pressure(const Polled& polled, bool check_due);
  void handle_new_files(const Polled& polled);
  void handle_clients(const Polled& polled);

  void scan(unsigned rescans);
  std::vector<bundles::Session> update_recorded();
  void forget_gone(const std::vector<bundles::Session>& sessions);
  void add(const bundles::Session& session);
  void finalize_found_dead(const bundles::Session& session);
  bool has_unfinished_session() const;
  void add_gpu_processes() const;
  std::set<std::filesystem::path> dead_processes(const Polled& polled, bool check_due) const;
  void finalize_last(int stop);
  void finalize(const std::set<std::filesystem::path>& dead, Clock::duration longest);
  bundles::UnknownEnds unknown_ends() const {
    return every_death_ == EveryDeath::yes ? bundles::UnknownEnds::keep
                                           : bundles::UnknownEnds::remove;
  }
  bool awaits_exit_of(pid_t process) const;
  std::optional<int> wait_status(const RecordedProcess& dead);
  deaths::DeathObservation observation_of(const RecordedProcess& dead);
  void sample_levels();

  const WatchedDirectories directories_;
  const std::uint64_t start_ns_;  // of this watch, since 1970
  const EveryDeath every_death_;
  Listeners listeners_;
  std::optional<Lives> lives_;
  std::vector<PollClient*> clients_;
  const Finalizer finalizer_;
  PressureBundles pressure_bundles_;
  PressureTrigger pressure_;
  std::optional<ExitEvents> exits_;  // only if pidfds do not report how a process ended
  NewFiles new_files_;               // in session and dump directories
  RecordedProcesses recorded_;
  std::set<std::filesystem::path> left_;  // recordings of unknown ends from before the watch
  std::filesystem::path last_sampled_;    // the recording whose process' levels were sampled last
  std::set<std::filesystem::path> bundle_directories_;  // of the programs seen so far
  Clock::time_point next_scan_{};                       // in case inotify missed a recording
  Clock::time_point next_check_{};                      // of what is not reported
  unsigned rescans_ = 0;     // still to do soon, for an unfinished session
  bool is_starting_ = true;  // what is dead now ended before the watch
};

}  // namespace oomrec::tools::service
