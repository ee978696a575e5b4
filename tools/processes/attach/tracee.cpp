#include "tools/processes/attach/tracee.h"

#include <fmt/format.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>

#include "common/machine/platform.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"

namespace oomrec::tools::processes {
namespace {

constexpr int kEventStop = PTRACE_EVENT_STOP;

constexpr std::chrono::milliseconds kOnItsWay{5};
constexpr std::chrono::seconds kPatience{1};  // for a thread that is to be let go

}  // namespace

Tracee::~Tracee() {
  if (!seized_) return;
  // Else it would stop as soon as it gets a processor, and stay so until this command ends.
  const auto until = std::chrono::steady_clock::now() + kPatience;
  StopResult result = StopResult::busy;
  while ((result = stop()) == StopResult::busy && std::chrono::steady_clock::now() < until &&
         !status_field(thread_, "State").starts_with('D')) {
  }
  if (result == StopResult::stopped) release();
}

int Tracee::seize() {
  if (ptrace(PTRACE_SEIZE, thread_, nullptr, nullptr) != 0) {
    const int error = errno;
    // One that an earlier object has asked to stop, in vain.
    if (error == EPERM && status_field(thread_, "TracerPid") == std::to_string(getpid())) {
      seized_ = interrupted_ = true;
      return 0;
    }
    // The kernel answers EPERM for a thread on its way out, too (ptrace_attach()).
    return error == EPERM && has_ended(thread_) ? ESRCH : error;
  }
  seized_ = true;
  return 0;
}

bool Tracee::wait_for_change(int& status, bool block) const {
  return waitpid(thread_, &status, __WALL | (block ? 0 : WNOHANG)) == thread_;
}

machine::InterruptedCall Tracee::waiting_call() const {
  if (!machine::ThreadRegisters::kCallIsReadBeforeStop) return {};
  // A thread that has been let go a moment ago is on its way into the call that it will wait in.
  const auto until = std::chrono::steady_clock::now() + kOnItsWay;
  for (;;) {
    std::ifstream file{fmt::format("/proc/{}/syscall", thread_)};
    std::string text;
    std::getline(file, text);
    const auto call = machine::InterruptedCall::of(text.c_str());
    if (call.number >= 0 || std::chrono::steady_clock::now() >= until) return call;
    usleep(100);
  }
}

bool Tracee::read_registers(const machine::InterruptedCall& call) {
  if (!registers_.read(thread_)) return false;
  return !registers_.restart_call(call) || registers_.write(thread_);
}

void Tracee::restart_call() const {
  machine::ThreadRegisters now;
  if (now.read(thread_) && now.restart_call(interrupted_call_))
    static_cast<void>(now.write(thread_));  // else the call ends with EINTR
}

StopResult Tracee::stop() {
  if (stopped_) return StopResult::stopped;
  if (!interrupted_) {
    interrupted_call_ = waiting_call();  // once it has stopped, it cannot be known
    if (ptrace(PTRACE_INTERRUPT, thread_, nullptr, nullptr) != 0) return StopResult::ended;
    interrupted_ = true;
  }
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::milliseconds(20);
  int status = 0;
  while (Clock::now() < until) {
    if (!wait_for_change(status, false)) {
      if (kill(thread_, 0) != 0 && errno == ESRCH) return StopResult::ended;
      usleep(20);
      continue;
    }
    if (!WIFSTOPPED(status)) {
      seized_ = false;
      return StopResult::ended;
    }
    if (status >> 16 == kEventStop) {
      interrupted_ = false;
      if (WSTOPSIG(status) != SIGTRAP) {  // of the whole process, by a signal
        ptrace(PTRACE_LISTEN, thread_, nullptr, nullptr);
        return StopResult::stopped_by_signal;
      }
      stopped_ = true;
      return read_registers(interrupted_call_) ? StopResult::stopped : StopResult::ended;
    }
    ptrace(PTRACE_CONT, thread_, nullptr, WSTOPSIG(status));
  }
  return StopResult::busy;
}

bool Tracee::set_registers(const machine::ThreadRegisters& registers) {
  if (!registers.write(thread_)) return false;
  registers_ = registers;
  return true;
}

bool Tracee::resume() {
  stopped_ = false;
  return ptrace(PTRACE_CONT, thread_, nullptr, nullptr) == 0;
}

bool Tracee::release() {
  stopped_ = seized_ = false;
  return ptrace(PTRACE_DETACH, thread_, nullptr, nullptr) == 0;
}

Tracee::Event Tracee::poll() {
  int status = 0;
  if (!wait_for_change(status, false))
    return kill(thread_, 0) != 0 && errno == ESRCH ? Event::ended : Event::none;
  if (!WIFSTOPPED(status)) {
    seized_ = false;
    return Event::ended;
  }
  const int signal = WSTOPSIG(status);
  if (status >> 16 == kEventStop) {
    if (signal == SIGTRAP) {  // the end of a stop by a signal, or one that stop() gave up
      if (interrupted_) restart_call();
      interrupted_ = false;
      ptrace(PTRACE_CONT, thread_, nullptr, nullptr);
      return Event::none;
    }
    ptrace(PTRACE_LISTEN, thread_, nullptr, nullptr);
    return Event::stopped_by_signal;
  }
  if (signal == SIGSEGV || signal == SIGBUS || signal == SIGILL || signal == SIGFPE ||
      signal == SIGTRAP) {
    stopped_ = true;
    read_registers({});
    return Event::crashed;
  }
  ptrace(PTRACE_CONT, thread_, nullptr, signal);
  return Event::none;
}

bool Tracee::set_blocked_signals(std::uint64_t mask) {
  return ptrace(PTRACE_SETSIGMASK, thread_, sizeof mask, &mask) == 0;
}

std::optional<std::uint64_t> Tracee::blocked_signals() const {
  std::uint64_t mask = 0;
  if (ptrace(PTRACE_GETSIGMASK, thread_, sizeof mask, &mask) != 0) return std::nullopt;
  return mask;
}

bool Tracee::in_restartable_sequence() const {
  struct Configuration {
    std::uint64_t pointer;
    std::uint32_t bytes, signature, flags, padding;
  } configuration{};
  constexpr auto kGetConfiguration = static_cast<__ptrace_request>(0x420f);  // Linux 5.13
  if (ptrace(kGetConfiguration, thread_, sizeof configuration, &configuration) <= 0 ||
      configuration.pointer == 0)
    return false;
  // struct rseq: cpu_id_start, cpu_id, then the sequence's descriptor.
  errno = 0;
  const long descriptor = ptrace(PTRACE_PEEKDATA, thread_, configuration.pointer + 8, nullptr);
  return errno == 0 && descriptor != 0;
}

namespace {

// The lower, the less the thread notices. One that sleeps is kept from nothing.
int cost_of(pid_t pid, pid_t thread) {
  std::ifstream file{fmt::format("/proc/{}/task/{}/syscall", pid, thread)};
  std::string word;
  file >> word;
  if (word == "running" || word.empty()) return 2;
  const long number = parse_number<long>(word).value_or(-1);
  if (number < 0) return 3;
  // Its time-out starts anew.
  const bool loses_time =
      std::ranges::find(machine::kEpollWaits, number) != std::end(machine::kEpollWaits) ||
      number == SYS_rt_sigtimedwait || number == SYS_semtimedop || number == SYS_io_getevents;
  return loses_time ? 1 : 0;
}

}  // namespace

bool has_ended(pid_t thread) {
  const std::string state = status_field(thread, "State");
  return state.empty() || state[0] == 'Z' || state[0] == 'X';
}

std::vector<pid_t> threads_of(pid_t pid) { return ids_in(fmt::format("/proc/{}/task", pid)); }

std::vector<pid_t> threads_by_cost(pid_t pid) {
  std::vector<std::pair<int, pid_t>> costs;
  for (const pid_t thread : threads_of(pid))
    if (!has_ended(thread)) costs.emplace_back(cost_of(pid, thread), thread);
  std::ranges::stable_sort(costs);
  std::vector<pid_t> threads;
  threads.reserve(costs.size());
  for (const auto& [cost, thread] : costs) threads.push_back(thread);
  return threads;
}

}  // namespace oomrec::tools::processes
