#include "tools/processes/attach/call_guard.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <string>
#include <vector>

#include "common/system/files.h"
#include "tools/base/error.h"
#include "tools/processes/attach/machine_code.h"
#include "tools/processes/attach/permission.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/attach/tracee.h"

namespace oomrec::tools::processes {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::chrono::seconds kLongest{20};

// Of a command that was killed.
struct OldCall {
  RemoteModule::Gap gap;
  CodeHeader header;
};

std::vector<RemoteModule::Gap> all_gaps(const RemoteMemory& memory) {
  std::vector<RemoteModule::Gap> gaps;
  for (const RemoteModule& module : remote_modules(memory))
    gaps.insert(gaps.end(), module.gaps().begin(), module.gaps().end());
  return gaps;
}

std::vector<OldCall> old_calls(const RemoteMemory& memory) {
  std::vector<OldCall> calls;
  for (const RemoteModule::Gap& gap : all_gaps(memory)) {
    OldCall call{gap, {}};
    if (gap.bytes > sizeof call.header && memory.read(gap.address, call.header) &&
        call.header.magic == CodeHeader::kMagic)
      calls.push_back(call);
  }
  return calls;
}

// While the code's mapping is there, a thread is in what it has called.
bool is_mapped(const RemoteMemory& memory, const OldCall& call) {
  std::uint64_t state = 0;
  return memory.read(call.header.scratch, state);
}

// Whether a thread is in the code now, or in what it has called. True, too, if that cannot be told.
// Both are asked while the thread stands still: it maps, calls, unmaps and leaves meanwhile.
// The last instructions of a call may lie in another gap (machine::kWayBackBytes): only such calls
// run code in gaps.
bool is_under_way(const RemoteMemory& memory, const OldCall& call) {
  if (is_mapped(memory, call)) return true;
  const pid_t pid = memory.pid();
  const std::vector<RemoteModule::Gap> gaps = all_gaps(memory);
  for (const pid_t thread : threads_of(pid)) {
    Tracee tracee{thread};
    const int error = tracee.seize();
    if (error == ESRCH) continue;
    if (error != 0) return true;
    const StopResult stopped = tracee.stop();
    if (stopped == StopResult::ended) continue;
    if (stopped != StopResult::stopped) return true;
    const std::uint64_t pc = tracee.registers().pc();
    for (const RemoteModule::Gap& gap : gaps)
      if (pc >= gap.address && pc <= gap.address + gap.bytes) return true;
    if (is_mapped(memory, call)) return true;
  }
  return false;
}

}  // namespace

CallGuard::CallGuard(pid_t pid) : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  const std::string text = fmt::format("oomrec-attach-{}-{}", pid, system::start_ticks(pid));
  std::memcpy(name.sun_path + 1, text.data(), std::min(text.size(), sizeof name.sun_path - 1));
  const auto bytes = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
  if (socket_ >= 0 && bind(socket_, reinterpret_cast<sockaddr*>(&name), bytes) != 0 &&
      errno == EADDRINUSE)
    throw refusal(fmt::format("another `oomrec attach` is at work on process {}", pid),
                  "Wait for it.");
  const RemoteMemory memory{pid};
  const auto until = Clock::now() + kLongest;
  for (const OldCall& call : old_calls(memory)) {
    while (is_under_way(memory, call)) {
      if (Clock::now() > until)
        throw refusal(
            fmt::format(
                "an earlier `oomrec attach`, which was killed, is still under way in process {}",
                pid),
            "It waits for a lock of the loader or the allocator. Try again later.");
      usleep(5000);
    }
    const CodeHeader none{};
    memory.write(call.gap.address, &none, sizeof none);
  }
}

}  // namespace oomrec::tools::processes
