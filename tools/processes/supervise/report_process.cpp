#include "tools/processes/supervise/report_process.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "common/system/files.h"
#include "common/system/text.h"
#include "tools/base/large_stack.h"
#include "tools/base/terminal.h"

namespace oomrec::tools::processes {
namespace {

constexpr const char* kOomScore = "/proc/self/oom_score_adj";

// Not the lowest, -1000: alone in a full cgroup, this process would wait for memory forever.
constexpr const char* kLow = "-999";
constexpr const char* kHigh = "1000";

// Does not allocate: a forked child also calls it.
void write_oom_score(const char* text) noexcept {
  const int file = open(kOomScore, O_WRONLY | O_CLOEXEC);
  if (file < 0) return;
  [[maybe_unused]] const ssize_t written = write(file, text, std::strlen(text));  // may be refused
  close(file);
}

[[noreturn]] void work_in_child(const ReportProcess::Work& work, ReportProgress& progress) {
  write_oom_score(kHigh);
  try {
    on_large_stack([&] { work(progress); });
  } catch (const std::exception& error) {
    remark(error.what());
  }
  std::fflush(nullptr);
  _exit(0);  // what is to be done at an exit is the parent's
}

}  // namespace

void ReportProgress::refill(std::uint64_t now_ns) {
  constexpr std::uint64_t kForEachNs = 60'000'000'000 / kMostLines;
  const std::uint64_t more = (now_ns - refilled_ns_) / kForEachNs;
  refilled_ns_ += more * kForEachNs;
  lines_left_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(kMostLines, lines_left_ + more));
}

void ReportProgress::begin(pid_t pid, std::string_view line) {
  system::Text{line_} << line;
  bundle_[0] = '\0';
  pid_ = pid;
}

void ReportProgress::made(std::string_view bundle) { system::Text{bundle_} << bundle; }

void ReportProgress::add_recorded(pid_t pid) {
  if (pid > 0 && recorded_count_ < kMostRecorded) recorded_[recorded_count_++] = pid;
}

void ReportProgress::take_recorded(std::set<pid_t>& into) {
  into.insert(recorded_.begin(), recorded_.begin() + recorded_count_);
  recorded_count_ = 0;
}

std::string ReportProgress::take_sum() {
  std::uint64_t sum = 0;
  std::vector<std::string> parts;
  for (std::size_t code = 0; code < counted_.size(); ++code) {
    if (counted_[code] == 0) continue;
    sum += counted_[code];
    parts.push_back(fmt::format("{} {}", counted_[code], kVerdictNames[code]));
  }
  counted_ = {};
  if (sum == 0) return {};
  return fmt::format("{} more {} of the run {} died: {}", sum, sum == 1 ? "process" : "processes",
                     sum == 1 ? "has" : "have", fmt::join(parts, ", "));
}

ReportProcess::ReportProcess() {
  void* const shared = mmap(nullptr, sizeof(ReportProgress), PROT_READ | PROT_WRITE,
                            MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) throw std::bad_alloc{};
  progress_ = new (shared) ReportProgress;
}

ReportProcess::~ReportProcess() { munmap(progress_, sizeof(ReportProgress)); }

bool ReportProcess::start(const Work& work) {
  progress_->refill(system::monotonic_ns());
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child < 0) return false;
  if (child == 0) work_in_child(work, *progress_);
  child_ = child;
  return true;
}

bool ReportProcess::run(const Work& work) {
  if (start(work)) return wait();
  on_large_stack([&] { work(*progress_); });
  return true;
}

bool ReportProcess::wait() {
  if (child_ == 0) return true;
  int status = 0;
  pid_t ended = 0;
  do ended = waitpid(child_, &status, 0);
  while (ended < 0 && errno == EINTR);
  reaped();
  return status == 0;
}

LowOomScore::LowOomScore() {
  const long bytes = system::read_file(kOomScore, before_, sizeof before_ - 1);
  before_[std::max(bytes, 0L)] = '\0';
  if (bytes > 0 && std::atoi(before_) > std::atoi(kLow)) write_oom_score(kLow);
}

void LowOomScore::restore() const noexcept {
  if (before_[0] != '\0') write_oom_score(before_);
}

}  // namespace oomrec::tools::processes
