#include "tools/processes/attach/object_counts.h"

#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <vector>

#include "common/session/attach_pages.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/processes/attach/call_guard.h"
#include "tools/processes/attach/permission.h"
#include "tools/processes/attach/recorder_copies.h"
#include "tools/processes/attach/remote_call.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"

namespace oomrec::tools::processes {

using session::ObjectCountsPage;

namespace {

// The interpreter gets to it between two instructions of Python code.
constexpr std::chrono::seconds kWait{5};

Error not_counted(pid_t pid, const std::string& why, const char* what_to_do) {
  return refusal(fmt::format("the Python objects of process {} are not counted: {}", pid, why),
                 what_to_do);
}

// False: the wait is over.
bool wait_for_interpreter(const RemoteMemory& memory, std::uint64_t address,
                          ObjectCountsPage& page) {
  const auto until = std::chrono::steady_clock::now() + kWait;
  while (memory.read(address, page)) {
    if (page.state == ObjectCountsPage::done || page.state == ObjectCountsPage::failed) return true;
    const bool is_over = std::chrono::steady_clock::now() > until;
    if (is_over && page.state == ObjectCountsPage::waiting) {
      const std::uint32_t none = ObjectCountsPage::none;  // the interpreter is not to do it later
      memory.write(address, &none, sizeof none);
      return false;
    }
    usleep(2000);
  }
  return false;
}

}  // namespace

recording::ObjectCounts count_objects(pid_t pid) {
  const CallGuard guard{pid};
  const RemoteMemory memory{pid};
  const std::vector<RemoteModule> modules = remote_modules(memory);
  const RemoteModule* const copy = recording_copy(memory, modules);
  const std::uint64_t function = copy != nullptr ? copy->address_of("oomrec_count_objects") : 0;
  const std::uint64_t address = copy != nullptr ? copy->address_of("oomrec_object_counts") : 0;
  if (function == 0 || address == 0)
    throw not_counted(pid, "it is not attached to", "Attach to it: oomrec attach --objects PID");
  const RemoteResult result = call_remotely({.pid = pid, .function = function});
  if (!result.problem.empty())
    throw not_counted(pid, printable(result.problem), "It is recorded without.");
  ObjectCountsPage page{};
  if (!wait_for_interpreter(memory, address, page))
    throw not_counted(pid,
                      fmt::format("its main thread has run no Python code for {} s", kWait.count()),
                      "Count while it works: a program that waits in a system call, or computes "
                      "in C, cannot.");
  std::string text(std::min<std::uint64_t>(page.bytes, session::kObjectCountsBytes), '\0');
  if (page.state == ObjectCountsPage::failed ||
      !memory.read(address + sizeof page, text.data(), text.size()))
    throw not_counted(pid, "it has no memory for their list", "It is recorded without.");
  return recording::object_counts_of(text);
}

}  // namespace oomrec::tools::processes
