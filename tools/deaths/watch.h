// What `oomrec run` sees of the death of its program while others cannot: when a counter of kills
// rose, and who else was in the cgroup.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "tools/deaths/counters.h"

namespace oomrec::tools::deaths {

// All that somebody saw; as it is, nobody did.
struct Watched {
  std::optional<int> wait_status;
  std::uint64_t realtime_ns = 0;  // when it was waited for; 0: just now
  pid_t sender = 0;     // of the signal that ended it, where we passed it on; 0: not known
  MemoryCgroup cgroup;  // that was watched
  std::optional<std::uint64_t> kills_before;         // in it, at the start
  std::optional<std::uint64_t> parent_kills_before;  // in its parent and below
  std::optional<std::uint64_t> system_kills_before;
  bool at_once = false;    // the counter rose within 1 s of the death
  bool alone = false;      // nobody but it and us was in the cgroup whenever we looked, and the
                           // counter had not risen while it ran on
  bool others = false;     // somebody else's death was seen then
  Pressure pressure;       // when the death was noticed
  bool dismissed = false;  // its launcher ended it, after another rank had run out of memory
};

// Twice a second a look, and one when the program has ended: some 50 µs each.
class Watch {
 public:
  // Looks for the first time: before the program starts.
  Watch();

  // What else is done at every look from now on.
  void also(std::function<void()> look) { also_ = std::move(look); }

  void started(pid_t program) { program_ = program; }
  void look();
  void passed_on(int signal, pid_t sender);
  void reaped_another();

  Watched ended(int wait_status);

 private:
  bool rose_at_look();  // the cgroup's counter

  // A counter, and between which two looks it rose last.
  struct Counter {
    std::optional<std::uint64_t> kills;
    std::uint64_t rose_after_ns = 0;                                            // 0: it never did
    bool update(std::optional<std::uint64_t> now, std::uint64_t last_look_ns);  // true: it rose
  };

  std::function<void()> also_;
  Watched watched_;
  Counter cgroup_, system_;
  std::optional<std::vector<pid_t>> processes_;
  pid_t program_ = 0;
  bool alone_ = true;          // at every look so far
  bool rose_at_last_ = false;  // the cgroup's counter
  std::uint64_t last_look_ns_ = 0;
  std::uint64_t last_reaped_ns_ = 0;
  int passed_signal_ = 0;
};

}  // namespace oomrec::tools::deaths
