// Watches every recorded process of a user from outside: a bundle within a second of each death,
// and one of the largest when memory is what the machine waits for.
//
// It sleeps until something happens: a recording begins (inotify), a process ends (pidfd), memory
// is short (PSI), or it is told to stop. Only what it cannot be told it looks for twice a second:
// processes of other pid namespaces, and pressure where the kernel has no triggers.
#pragma once

#include <poll.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tools/bundles/recover/orphans.h"
#include "tools/service/fleet/listener.h"
#include "tools/service/fleet/poll_client.h"
#include "tools/service/watch/exit_events.h"
#include "tools/service/watch/pressure_trigger.h"
#include "tools/service/watch/process_end.h"

namespace oomrec::tools::service {

class Watcher {
 public:
  using Clock = std::chrono::steady_clock;

  // `tell` gets a line for each bundle; `on_oom_exec` is run for each kill for memory (on_oom.h).
  Watcher(std::vector<std::filesystem::path> dump_directories,
          std::function<void(const std::string&)> tell, std::string on_oom_exec);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  // Who is told what happens, and who waits along. Both must outlive the watcher; before run().
  void tell_also(Listener& listener) { listeners_.push_back(&listener); }
  void attend_also(Attendant& attendant) { attendants_.push_back(&attendant); }

  // What is dead becomes a bundle; how many there were.
  unsigned look_once();

  // Until SIGTERM, SIGINT or SIGHUP, which are blocked from now on.
  void run();

 private:
  struct Recorded {
    bundles::Session session;
    ProcessEnd end;
    Clock::time_point warned{};  // never: the epoch
  };

  void watch_for_new(const std::filesystem::path& directory);
  bool take_changes();
  std::vector<bundles::Session> find();
  bool has_begun_one() const;
  void look(unsigned again);
  unsigned bury(Recorded& dead, std::optional<int> wait_status);
  void tell_end(const std::filesystem::path& recording, const bundles::Recovered* recovered);
  void bury_all(const std::vector<std::filesystem::path>& dead);
  void warn_of_pressure();
  void tell_company_on_gpus() const;
  bool wait(int signals);
  Clock::time_point wakes_at() const;
  std::vector<std::filesystem::path> dead_of(const std::vector<pollfd>& ends);
  bool awaits(pid_t process) const;
  std::optional<int> wait_status(const Recorded& dead);

  const std::vector<std::filesystem::path> dump_directories_;
  const std::function<void(const std::string&)> tell_;
  const std::string on_oom_exec_;
  const std::uint64_t began_ns_;  // since 1970
  std::vector<Listener*> listeners_;
  std::vector<Attendant*> attendants_;
  PressureTrigger pressure_;
  std::optional<ExitEvents> exits_;  // where pidfds do not tell how a process ended
  std::map<std::filesystem::path, Recorded> recorded_;
  std::set<std::filesystem::path> dumps_;         // where bundles are put
  Clock::time_point looked_for_largest_{};        // never: the epoch
  Clock::time_point looks_at_{};                  // for recordings that nothing told of
  Clock::time_point looks_for_death_at_{};        // of those that cannot be polled
  unsigned looks_again_ = 0;                      // soon, for one that has just begun
  int changes_ = -1;                              // inotify on the directories of recordings
  std::map<int, std::set<std::string>> awaited_;  // names in a watched directory; "": all of them
};

}  // namespace oomrec::tools::service
