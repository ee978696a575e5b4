// Reports deaths in a child process. What a report allocates is gone with the child; and if memory
// is so short that the kernel kills it, the kernel takes the child, not this process, which has the
// program's exit code to return and the death to name.
#pragma once

#include <sys/types.h>

#include <array>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "common/session/vocabulary.h"

namespace oomrec::tools::processes {

// What a report has done so far, in memory that it shares with this process.
class ReportProgress {
 public:
  // Lines on stderr for processes beside the program: so many at once, and as many in a minute.
  // Those beyond are counted, and summed up in one line.
  static constexpr std::uint32_t kMostLines = 8;

  bool may_say() const { return lines_left_ != 0; }
  void said() { --lines_left_; }
  void count(VerdictCode code) { ++counted_[static_cast<std::size_t>(code)]; }
  void refill(std::uint64_t now_ns);

  // The death in hand, to be said by this process if the child is killed.
  void begin(pid_t pid, std::string_view line);
  void made(std::string_view bundle);
  void end() { pid_ = 0; }
  pid_t pid() const { return pid_; }  // 0: none is
  std::string_view line() const { return line_; }
  std::string_view bundle() const { return bundle_; }  // empty: none is made yet

  // Processes that had a recording, and their helpers.
  void add_recorded(pid_t pid);
  void take_recorded(std::set<pid_t>& into);

  // "23 more processes of the run have died: 22 cgroup_oom_kill, 1 crashed". Empty: none.
  std::string take_sum();

 private:
  static constexpr std::size_t kMostRecorded = 1024;

  std::uint64_t refilled_ns_ = 0;
  std::uint32_t lines_left_ = kMostLines;
  std::uint32_t recorded_count_ = 0;
  std::array<std::uint32_t, kVerdictNames.size()> counted_{};
  std::array<pid_t, kMostRecorded> recorded_{};
  pid_t pid_ = 0;
  char line_[512] = {}, bundle_[1024] = {};
};

class ReportProcess {
 public:
  using Work = std::function<void(ReportProgress&)>;

  ReportProcess();
  ~ReportProcess();
  ReportProcess(const ReportProcess&) = delete;
  ReportProcess& operator=(const ReportProcess&) = delete;

  // Starts the work in a child; false: there can be none now.
  bool start(const Work& work);
  bool is_running() const { return child_ != 0; }
  pid_t child() const { return child_; }

  // The same, and waits for it: false if it was killed. Does the work here if there can be no
  // child.
  bool run(const Work& work);

  // A child has been waited for: the report, if it is child().
  void reaped() { child_ = 0; }
  bool wait();

  ReportProgress& progress() { return *progress_; }

 private:
  ReportProgress* progress_;
  pid_t child_ = 0;
};

// The kernel kills this process for memory after all others, as far as it may ask for that.
class LowOomScore {
 public:
  LowOomScore();
  // In a child before its exec: as before.
  void restore() const noexcept;

 private:
  char before_[16] = {};
};

}  // namespace oomrec::tools::processes
