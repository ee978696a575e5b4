#include "tools/processes/attach/recorder_copies.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <map>
#include <set>
#include <vector>

#include "tools/processes/attach/safe_point.h"
#include "tools/processes/attach/target.h"
#include "tools/processes/attach/tracee.h"

namespace oomrec::tools::processes {
namespace {

using Clock = std::chrono::steady_clock;

// A thread that has waited so long in one call of the program's stays there.
constexpr std::chrono::milliseconds kAsleep{100};

class Threads {
 public:
  Threads(const RemoteMemory& memory, const RemoteModule& copy, std::int64_t thread_state)
      : memory_(memory),
        copy_(copy),
        thread_state_(thread_state),
        modules_(remote_modules(memory)),
        safe_points_(memory, modules_) {}

  // Until a list of all threads has none that was not dealt with: /proc may leave one out while
  // others end. Those that start meanwhile have no state.
  bool free_all(Clock::time_point until) {
    for (;;) {
      bool is_complete = true;
      for (const pid_t thread : threads_of(memory_.pid())) {
        if (free_.contains(thread)) continue;
        is_complete = false;
        if (has_ended(thread) || free(thread)) free_.insert(thread);
      }
      if (is_complete) return true;
      if (stays_ || Clock::now() > until) return false;
      usleep(1000);
    }
  }

 private:
  bool free(pid_t thread) {
    Tracee tracee{thread};
    if (const int error = tracee.seize(); error != 0) {
      if (error != ESRCH) throw_not_permitted(memory_.pid(), error);
      return true;
    }
    // First at leisure: reading the call frame information takes a few ms.
    if (tracee.stop() != StopResult::stopped) return false;
    const ThreadSnapshot first = ThreadSnapshot::of(memory_, tracee.registers());
    if (!tracee.resume()) return false;
    if (safe_points_.may_be_in(copy_, first)) {
      follow_inside(thread, first);
      return false;
    }
    if (tracee.stop() != StopResult::stopped) return false;
    const ThreadSnapshot now = ThreadSnapshot::of(memory_, tracee.registers());
    if (!(now == first) && safe_points_.may_be_in(copy_, now)) return false;
    return clear_state(now.registers.thread_pointer());  // and ~Tracee lets it go
  }

  // Whether it still waits where it has waited before.
  void follow_inside(pid_t thread, const ThreadSnapshot& now) {
    const auto [seen, is_new] = inside_.try_emplace(thread, Inside{now, Clock::now()});
    const bool waits = now.registers.was_asleep();
    if (is_new || (waits && seen->second.snapshot == now)) {
      stays_ = stays_ || (waits && Clock::now() - seen->second.since > kAsleep);
    } else {
      seen->second = {now, Clock::now()};
    }
  }

  bool clear_state(std::uint64_t control_block) {
    std::uint64_t first_word = 0;
    if (!memory_.read(control_block, first_word) ||
        !machine::is_control_block(control_block, first_word))
      return true;
    const std::uint64_t none = 0;
    return memory_.write(control_block + static_cast<std::uint64_t>(thread_state_), &none,
                         sizeof none);
  }

  const RemoteMemory& memory_;
  const RemoteModule& copy_;
  const std::int64_t thread_state_;
  const std::vector<RemoteModule> modules_;
  SafePoints safe_points_;
  std::set<pid_t> free_;
  struct Inside {
    ThreadSnapshot snapshot;
    Clock::time_point since;
  };
  std::map<pid_t, Inside> inside_;
  bool stays_ = false;  // a thread does
};

}  // namespace

bool free_idle_copy(const RemoteMemory& memory, const RemoteModule& copy, std::int64_t thread_state,
                    Clock::time_point until) {
  return Threads{memory, copy, thread_state}.free_all(until);
}

bool is_recorder(const RemoteModule& module) { return module.file_name().starts_with("liboomrec"); }

CopyState state_of(const RemoteMemory& memory, const RemoteModule& copy) {
  CopyState state = CopyState::unused;
  const std::uint64_t flag = copy.address_of("oomrec_attached");
  return flag != 0 && memory.read(flag, state) ? state : CopyState::unused;
}

const RemoteModule* recording_copy(const RemoteMemory& memory,
                                   const std::vector<RemoteModule>& modules) {
  const auto found = std::ranges::find_if(modules, [&](const RemoteModule& module) {
    return is_recorder(module) && state_of(memory, module) == CopyState::records;
  });
  return found != modules.end() ? &*found : nullptr;
}

const RemoteModule* any_recording_copy(const RemoteMemory& memory,
                                       const std::vector<RemoteModule>& modules) {
  if (const RemoteModule* const attached = recording_copy(memory, modules)) return attached;
  const auto found = std::ranges::find_if(modules, is_recorder);
  return found != modules.end() ? &*found : nullptr;
}

}  // namespace oomrec::tools::processes
