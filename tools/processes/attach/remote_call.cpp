#include "tools/processes/attach/remote_call.h"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <initializer_list>
#include <optional>
#include <string_view>
#include <vector>

#include "common/machine/code_writer.h"
#include "common/machine/platform.h"
#include "tools/base/error.h"
#include "tools/processes/attach/machine_code.h"
#include "tools/processes/attach/permission.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/attach/safe_point.h"
#include "tools/processes/attach/target.h"
#include "tools/processes/attach/tracee.h"

namespace oomrec::tools::processes {

[[gnu::weak]] void reach_step(std::string_view) {}

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

// How long to look for a safe point, and how long the call may take: dlopen waits while another
// thread loads a library.
constexpr milliseconds kSearch{5000}, kCall{10000};

// --- Where the code goes -------------------------------------------------------------------------

// Takes pieces of memory that the process can read and execute, and that nothing uses.
class Gaps {
 public:
  Gaps(const RemoteMemory& memory, const std::vector<RemoteModule>& modules) : memory_(memory) {
    for (const RemoteModule& module : modules)
      for (const RemoteModule::Gap& gap : module.gaps()) gaps_.push_back(gap);
    std::ranges::sort(gaps_, [](const auto& a, const auto& b) { return a.bytes < b.bytes; });
  }
  ~Gaps() {
    if (!in_use_) restore();
  }
  Gaps(const Gaps&) = delete;
  Gaps& operator=(const Gaps&) = delete;

  // 0: there is no such piece. `near`, if not 0: no farther from there than `reach`.
  std::uint64_t take(std::uint64_t bytes, std::uint64_t near = 0, std::uint64_t reach = 0) {
    for (RemoteModule::Gap& gap : gaps_) {
      if (gap.bytes < bytes) continue;
      if (near != 0 && std::max(gap.address, near) - std::min(gap.address, near) > reach) continue;
      const std::uint64_t address = gap.address;
      const std::uint64_t whole = (bytes + 15) & ~std::uint64_t{15};
      std::vector<std::uint8_t> before(bytes);
      if (!memory_.read(address, before.data(), bytes)) continue;
      before_.emplace_back(address, std::move(before));
      gap.address += std::min(whole, gap.bytes);
      gap.bytes -= std::min(whole, gap.bytes);
      return address;
    }
    return 0;
  }

  // A thread may run what is there, so it stays, until restore().
  void set_in_use() { in_use_ = true; }

  // Puts back what was there.
  void restore() {
    for (const auto& [address, bytes] : before_) memory_.write(address, bytes.data(), bytes.size());
    before_.clear();
  }

 private:
  const RemoteMemory& memory_;
  std::vector<RemoteModule::Gap> gaps_;
  std::vector<std::pair<std::uint64_t, std::vector<std::uint8_t>>> before_;
  bool in_use_ = false;
};

// An address where nothing is mapped, far from what grows.
std::uint64_t free_address(const RemoteMemory& memory) {
  constexpr std::uint64_t kLowest = std::uint64_t{1} << 32;
  std::uint64_t largest = 0, address = 0, end = kLowest;
  for (const RemoteMapping& mapping : memory.mappings()) {
    const std::uint64_t start = std::min(mapping.start, machine::kHighestAddress);
    if (start > end && start - end > largest) {
      largest = start - end;
      address = end + largest / 2;
    }
    end = std::max(end, mapping.end);
  }
  return largest < 16 * kScratchBytes ? 0 : address & ~std::uint64_t{0xffff};
}

// --- The call ------------------------------------------------------------------------------------

// In the C library, which had parts of its own before glibc 2.34; 0: not there.
std::uint64_t in_c_library(const std::vector<RemoteModule>& modules,
                           std::initializer_list<std::string_view> names) {
  for (const std::string_view name : names)
    for (const RemoteModule& module : modules)
      if (is_c_library(module) || module.file_name().starts_with("libdl"))
        if (const std::uint64_t address = module.address_of(name)) return address;
  return 0;
}

std::uint64_t dlopen_in(const std::vector<RemoteModule>& modules) {
  return in_c_library(modules, {"dlopen", "__libc_dlopen_mode"});
}

// Those of a program that has just begun, once its C library is mapped as a whole.
std::vector<RemoteModule> mapped_modules(const RemoteMemory& memory) {
  const auto until = Clock::now() + std::chrono::milliseconds{200};
  for (;;) {
    std::vector<RemoteModule> modules = remote_modules(memory);
    if (modules.empty() || dlopen_in(modules) != 0 || Clock::now() > until) return modules;
    usleep(2000);
  }
}

class Caller {
 public:
  explicit Caller(const RemoteRequest& request)
      : request_(request),
        memory_(request.pid),
        modules_(mapped_modules(memory_)),
        safe_points_(memory_, modules_),
        gaps_(memory_, modules_) {
    find_functions();
    place_constants();
  }

  RemoteResult call() {
    const auto until = Clock::now() + kSearch;
    std::string obstacle;
    do {
      const std::vector<pid_t> threads = threads_by_cost(request_.pid);
      if (threads.empty()) throw_ended(request_.pid);
      for (const pid_t thread : threads) {
        ++result_.attempts;
        if (try_thread(thread, obstacle)) return result_;
        if (Clock::now() > until) break;
      }
      usleep(1000);
    } while (Clock::now() < until);
    throw refusal(
        fmt::format("no thread of process {} came to a point where a library can be loaded "
                    "within {} s: the last one was in {}",
                    request_.pid, kSearch.count() / 1000,
                    obstacle.empty() ? "the kernel" : obstacle),
        "Try again; `oomrec attach` changes nothing until it succeeds.");
  }

 private:
  void find_functions() {
    call_.errno_location = in_c_library(modules_, {"__errno_location"});
    call_.open = dlopen_in(modules_);
    call_.open_error = in_c_library(modules_, {"dlerror"});
    if (modules_.empty() || has_ended(request_.pid)) throw_ended(request_.pid);
    if (call_.open == 0 || call_.errno_location == 0)
      throw refusal(fmt::format("the C library of process {} has no dlopen", request_.pid),
                    kStartRecorded);
    if (request_.library.empty()) call_.open = 0;
    if (call_.open_error == 0) call_.open_error = call_.errno_location;
    call_.function = request_.function;
  }

  std::uint64_t place_text(const std::string& text) {
    const std::uint64_t address = gaps_.take(text.size() + 1);
    if (address == 0) throw_no_gap();
    texts_.emplace_back(address, text);
    return address;
  }

  [[noreturn]] void throw_no_gap() const {
    if (has_ended(request_.pid)) throw_ended(request_.pid);
    throw refusal(fmt::format("the modules of process {} leave no room for the call", request_.pid),
                  kStartRecorded);
  }

  void place_constants() {
    const MachineCode code = code_of(call_, machine::kHighestAddress, {}, 0, 0);  // for its size
    code_address_ = gaps_.take(code.bytes.size());
    if (code_address_ == 0) throw_no_gap();
    if (!request_.library.empty()) call_.library_path = place_text(request_.library);
    call_.argument = place_text(request_.argument);
  }

  // False: the thread is at no safe point, or has ended.
  bool try_thread(pid_t thread, std::string& obstacle) {
    Tracee tracee{thread};
    if (const int error = tracee.seize(); error != 0) {
      if (error != ESRCH) throw_not_permitted(request_.pid, error);
      return false;
    }
    reach_step("seized");
    // First at leisure: reading the call frame information takes a few ms.
    if (!is_stopped(tracee)) return false;
    reach_step("stopped");
    const ThreadSnapshot first = ThreadSnapshot::of(memory_, tracee.registers());
    if (!tracee.resume()) return false;
    obstacle = safe_points_.obstacle(first);
    if (!obstacle.empty() && is_waiting(first)) return false;

    const auto stopped_at = Clock::now();
    if (!is_stopped(tracee)) return false;
    const ThreadSnapshot now = ThreadSnapshot::of(memory_, tracee.registers());
    if (!(now == first)) obstacle = safe_points_.obstacle(now);
    if (obstacle.empty() && tracee.in_restartable_sequence()) obstacle = "a restartable sequence";
    if (!obstacle.empty()) return false;  // and ~Tracee lets it go
    // Whether a call goes on or begins anew, the next stop shows. The stack may differ: ppoll and
    // pselect6 leave the rest of their time there at each stop.
    if (machine::kStopHidesCall && is_waiting(now) && !(now.registers == first.registers))
      return false;
    std::uint64_t way_back = 0;
    if (machine::kWayBackBytes != 0) {
      way_back = gaps_.take(machine::kWayBackBytes, now.registers.pc(), machine::kWayBackReach);
      if (way_back == 0) obstacle = "code that is far from every module";
      if (way_back == 0) return false;
    }
    run_on(tracee, way_back);
    result_.thread = thread;
    result_.paused_ns = static_cast<std::uint64_t>((Clock::now() - stopped_at).count());
    return true;
  }

  static bool is_waiting(const ThreadSnapshot& thread) { return thread.registers.in_call(); }

  bool is_stopped(Tracee& tracee) {
    switch (tracee.stop()) {
      case StopResult::stopped:
        return true;
      case StopResult::stopped_by_signal:
        throw refusal(fmt::format("process {} is stopped", request_.pid),
                      fmt::format("Let it go on: kill -CONT {}", request_.pid));
      case StopResult::busy:
      case StopResult::ended:
        break;
    }
    return false;
  }

  void run_on(Tracee& tracee, std::uint64_t way_back) {
    const machine::ThreadRegisters before = tracee.registers();
    const std::optional<std::uint64_t> mask = tracee.blocked_signals();
    const std::uint64_t scratch = free_address(memory_);
    if (!mask || scratch == 0) throw_no_gap();
    const machine::ThreadRegisters after = before.restarted();
    const MachineCode code = code_of(call_, scratch, after, *mask, way_back);
    for (const auto& [address, text] : texts_) write(address, text.c_str(), text.size() + 1);
    write(code_address_, code.bytes.data(), code.bytes.size());
    const std::vector<std::uint8_t> last = machine::way_back(after, way_back);
    write(way_back, last.data(), last.size());
    reach_step("written");
    // In this order: if this command is killed in between, the code restores the mask.
    gaps_.set_in_use();
    if (!tracee.set_registers(before.redirected(code_address_ + sizeof(CodeHeader))))
      throw_ended(request_.pid);
    reach_step("redirected");
    tracee.set_blocked_signals(~std::uint64_t{0});
    reach_step("blocked");
    if (!tracee.resume()) throw_ended(request_.pid);
    wait_for_result(tracee, code, scratch, before, *mask);
    leave(tracee, code, scratch, before, *mask);
  }

  void write(std::uint64_t address, const void* from, std::size_t bytes) {
    if (bytes != 0 && !memory_.write(address, from, bytes))
      throw refusal(
          fmt::format("the memory of process {} cannot be written", request_.pid),
          "Is /proc mounted with its usual options, and proc_mem.force_override not \"never\"?");
  }

  // The code reads nothing back while it runs, so what it has done is read from its mapping.
  void wait_for_result(Tracee& tracee, const MachineCode& code, std::uint64_t scratch,
                       const machine::ThreadRegisters& before, std::uint64_t mask) {
    constexpr milliseconds kMaps{100};  // within this time the code has its mapping, usually
    auto until = Clock::now() + kCall;
    auto look_at = Clock::now() + kMaps;
    bool has_started = false;
    for (;;) {
      Mailbox mailbox{};
      const bool is_mapped = memory_.read(scratch, mailbox);
      if (is_mapped && mailbox.state == Mailbox::done) {
        reach_step("done");
        result_.problem =
            mailbox.result != 0 ? memory_.text(mailbox.result) : memory_.text(mailbox.error);
        if (mailbox.library == 0 && !request_.library.empty())
          result_.problem = fmt::format("it cannot load {}: {}", request_.library, result_.problem);
        const std::uint64_t read = Mailbox::read_by_command;
        memory_.write(scratch, &read, sizeof read);
        return;
      }
      if (is_mapped && mailbox.state == Mailbox::at_work && !has_started) {
        has_started = true;
        reach_step("calling");
      }
      bool is_over = has_started && !is_mapped;  // it has waited for us long enough
      if (!is_mapped && !is_over && Clock::now() > look_at) {
        is_over = has_left(tracee, code, scratch);
        look_at = Clock::now() + kMaps;
      }
      if (is_over) {
        result_.is_known = false;
        return;
      }
      switch (tracee.poll()) {
        case Tracee::Event::none:
          break;
        case Tracee::Event::stopped_by_signal:
          until = Clock::now() + kCall;
          break;
        case Tracee::Event::ended:
          throw_ended(request_.pid);
        case Tracee::Event::crashed:
          tracee.set_registers(before);
          tracee.set_blocked_signals(mask);
          throw refusal(
              fmt::format("the call crashed in process {}, which goes on without it", request_.pid),
              "This is a bug of oomrec: please report it.");
      }
      if (Clock::now() > until) {
        throw refusal(
            fmt::format("the call in process {} has not returned after {} s: it waits for a lock "
                        "of the loader or the allocator, and goes on by itself",
                        request_.pid, kCall.count() / 1000),
            fmt::format("Look again later: oomrec top {}", request_.pid));
      }
      usleep(30);
    }
  }

  bool is_in(const MachineCode& code, std::uint64_t pc) const {
    return pc >= code_address_ && pc < code_address_ + code.bytes.size();
  }

  // Whether the thread has been through the code, while this command got no processor.
  bool has_left(Tracee& tracee, const MachineCode& code, std::uint64_t scratch) const {
    if (tracee.stop() != StopResult::stopped) return false;
    Mailbox mailbox{};
    const bool is_mapped = memory_.read(scratch, mailbox);
    const bool is_inside = is_in(code, tracee.registers().pc());
    tracee.resume();
    return !is_mapped && !is_inside;
  }

  // Gives the thread its registers back, while the code waits for that.
  void leave(Tracee& tracee, const MachineCode& code, std::uint64_t scratch,
             const machine::ThreadRegisters& before, std::uint64_t mask) {
    const auto until = Clock::now() + kCall;
    // Stopping it earlier would only keep it.
    for (Mailbox mailbox; memory_.read(scratch, mailbox) && Clock::now() < until;) usleep(10);
    for (;;) {
      const StopResult stopped = tracee.stop();
      if (stopped == StopResult::ended) throw_ended(request_.pid);
      if (Clock::now() > until) return;
      if (stopped != StopResult::stopped) continue;
      const std::uint64_t at = tracee.registers().pc() - code_address_;
      if (!is_in(code, tracee.registers().pc())) break;  // it has restored itself
      if (at >= code.last_wait && at < code.last_wait_end) {
        reach_step("returning");
        tracee.set_blocked_signals(mask);
        reach_step("unblocked");
        tracee.set_registers(before);
        break;
      }
      tracee.resume();
      usleep(10);
    }
    tracee.release();
    reach_step("released");
    gaps_.restore();
  }

  const RemoteRequest& request_;
  RemoteMemory memory_;
  std::vector<RemoteModule> modules_;
  SafePoints safe_points_;
  Gaps gaps_;
  RemoteCall call_;
  std::uint64_t code_address_ = 0;
  std::vector<std::pair<std::uint64_t, std::string>> texts_;
  RemoteResult result_;
};

}  // namespace

RemoteResult call_remotely(const RemoteRequest& request) {
  Caller caller{request};
  return caller.call();
}

}  // namespace oomrec::tools::processes
