#include "tools/processes/attach/target.h"
#include "common/machine/platform.h"

#include <elf.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <fstream>

#include "common/limits/cgroup.h"
#include "tools/base/error.h"
#include "tools/base/proc.h"
#include "tools/base/text.h"
#include "tools/processes/attach/permission.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/attach/sandbox.h"
#include "tools/processes/attach/tracee.h"

namespace oomrec::tools::processes {
namespace {

void require_no_tracer(pid_t thread) {
  if (const auto tracer = status_field(thread, "TracerPid"); !tracer.empty() && tracer != "0")
    throw refusal(
        fmt::format("process {} is traced by process {} ({}), and a process has one tracer", thread,
                    tracer, printable(name_of_process(parse_number<pid_t>(tracer).value_or(0)))),
        "End the debugger or strace, then attach.");
}

// After a first look, at which it was there.
[[noreturn]] void throw_ended(pid_t pid) {
  throw refusal(fmt::format("process {} ended meanwhile", pid),
                "`oomrec recover` and `oomrec ls` show what recorded processes left.");
}

void require_no_end(pid_t pid) {
  if (has_ended(pid)) throw_ended(pid);
}

// Whether a cgroup in which it is has been frozen, as for `docker pause`. A frozen process may seem
// to sleep, and does not stop for a tracer. Version 2 may be mounted beside version 1.
bool is_frozen(pid_t pid) {
  constexpr const char* kFileV1 = "/freezer.self_freezing";
  constexpr const char* kFileV2 = "/cgroup.freeze";
  for (const char* const controller : {"freezer", "unified"}) {
    limit::CgroupPath cgroup{OutsideHooks::in_hook(), controller, kFileV1, kFileV2, nullptr, pid};
    std::uint64_t is_set = 0;
    do {
      if (cgroup.read(cgroup.is_v1() ? kFileV1 : kFileV2, is_set) && is_set != 0) return true;
    } while (cgroup.move_to_parent());
  }
  return false;
}

void require_state(pid_t pid) {
  const std::string state = status_field(pid, "State");
  if (state.empty()) throw refusal(fmt::format("there is no process {}", pid), "`ps` lists them.");
  if (const auto group = status_field(pid, "Tgid"); group != std::to_string(pid))
    throw refusal(fmt::format("{} is a thread of process {}", pid, group),
                  fmt::format("Give the process: oomrec attach {}", group));
  if (pid == getpid()) throw refusal("it cannot attach to itself", "Give another process.");
  if (has_ended(pid) && !threads_by_cost(pid).empty())
    throw refusal(fmt::format("the main thread of process {} has ended, and with it what /proc "
                              "says of the process",
                              pid),
                  kStartRecorded);
  if (has_ended(pid))
    throw refusal(
        fmt::format("process {} has ended (it is a zombie: its parent has not waited for it)", pid),
        "`oomrec recover` and `oomrec ls` show what recorded processes left.");
  require_no_tracer(pid);
  if (state[0] == 'T' || state[0] == 't')
    throw refusal(fmt::format("process {} is stopped", pid),
                  fmt::format("Let it go on: kill -CONT {}", pid));
  if (is_frozen(pid))
    throw refusal(fmt::format("process {} is frozen by a cgroup", pid),
                  "Thaw it: `docker unpause` a container, `systemctl thaw` a unit.");
}

// The ELF header of its program; false: it may not be read.
bool read_program_header(pid_t pid, Elf64_Ehdr& header) {
  std::ifstream file{fmt::format("/proc/{}/exe", pid), std::ios::binary};
  return static_cast<bool>(file.read(reinterpret_cast<char*>(&header), sizeof header));
}

bool is_privileged(const RemoteMemory& memory) {
  return memory.auxiliary_value(AT_SECURE).value_or(0) != 0;
}

bool is_c_library_name(std::string_view name) {
  return name.starts_with("libc.so.6") || name.starts_with("libc-2.");
}

// Its loader and C library are one file, of several names.
bool is_musl_name(std::string_view name) {
  return name.starts_with("ld-musl") || name.starts_with("libc.musl") || name == "libc.so";
}

std::string_view name_in(const RemoteMapping& mapping) {
  return std::string_view{mapping.path}.substr(mapping.path.rfind('/') + 1);
}

// Those of a program with a loader, once that has mapped the C library: it may have just begun.
std::vector<RemoteMapping> mappings_with_libraries(const RemoteMemory& memory) {
  using Clock = std::chrono::steady_clock;
  const auto until = Clock::now() + std::chrono::seconds{2};
  for (;;) {
    std::vector<RemoteMapping> mappings = memory.mappings();
    const bool has_library = std::ranges::any_of(
        mappings, [](const RemoteMapping& mapping) { return is_c_library_name(name_in(mapping)); });
    // Not there at all: the kernel is replacing the program just now.
    const bool has_no_loader = memory.auxiliary_value(AT_BASE) == 0;
    if (mappings.empty() || has_library || has_no_loader || Clock::now() > until) return mappings;
    usleep(2000);
  }
}

// Who may see what a process has mapped may not always read it (kernel.yama.ptrace_scope).
void require_readable(const RemoteMemory& memory, const std::vector<RemoteMapping>& mappings) {
  const auto readable =
      std::ranges::find_if(mappings, [](const RemoteMapping& mapping) { return mapping.readable; });
  char byte = 0;
  if (readable == mappings.end() || memory.read(readable->start, byte)) return;
  if (errno == EPERM) throw_not_permitted(memory.pid(), EPERM);
}

void require_program(const RemoteMemory& memory) {
  const pid_t pid = memory.pid();
  const auto mappings = mappings_with_libraries(memory);
  std::error_code error;
  const std::filesystem::path program =
      std::filesystem::read_symlink(fmt::format("/proc/{}/exe", pid), error);
  require_no_end(pid);
  if (error == std::errc::no_such_file_or_directory) {
    if (status_field(pid, "PPid") == "2" || pid == 2)  // kthreadd's, or itself
      throw refusal(fmt::format("process {} is a thread of the kernel", pid),
                    "Give a program's process.");
    throw_ended(pid);
  }
  if (error || mappings.empty()) throw_not_permitted(pid, EPERM);
  Elf64_Ehdr header{};
  if (read_program_header(pid, header) &&
      (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != machine::kElfMachine))
    throw refusal(fmt::format("process {} ({}) is not a 64-bit " OOMREC_MACHINE " program", pid,
                              program.string()),
                  "oomrec records only those.");
  const auto maps = [&](auto is) {
    return std::ranges::any_of(mappings,
                               [&](const RemoteMapping& mapping) { return is(name_in(mapping)); });
  };
  if (maps(is_musl_name))
    throw refusal(fmt::format("process {} ({}) uses musl, whose functions oomrec does not observe",
                              pid, program.string()),
                  "Watch it from outside: oomrec track PID");
  require_readable(memory, mappings);
  const bool has_loader = loaded_dynamic_sections(memory).has_value();
  if (!has_loader && maps(is_c_library_name))
    throw refusal(
        fmt::format("process {} ({}) is statically linked, and does not call the C library "
                    "in its memory",
                    pid, program.string()),
        "An emulator, such as Valgrind or qemu, cannot be recorded. Watch it from outside: "
        "oomrec track PID");
  if (!has_loader || !maps(is_c_library_name))
    throw refusal(fmt::format("process {} ({}) is statically linked, and cannot load a library",
                              pid, program.string()),
                  "Link it dynamically, or watch it from outside: oomrec track PID");
  if (maps([](std::string_view name) {
        return name.starts_with("libasan.so") || name.starts_with("libtsan.so") ||
               name.starts_with("liblsan.so") || name.starts_with("libmsan");
      }))
    throw refusal(
        fmt::format("process {} is built with a sanitizer, which replaces malloc itself", pid),
        "Build it without, and attach to that.");
  if (is_privileged(memory))
    throw refusal(
        fmt::format("process {} ({}) is privileged: setuid, setgid or with file capabilities", pid,
                    program.string()),
        "oomrec does not record privileged programs.");
}

// The recorder reads there what the process is and how much memory it has.
void require_proc(pid_t pid) {
  const std::string root = fmt::format("/proc/{}/root", pid);
  struct stat found {};
  if (stat((root + "/proc/meminfo").c_str(), &found) == 0 || (errno != ENOENT && errno != ENOTDIR))
    return;
  std::error_code error;
  const std::string directory = printable(std::filesystem::read_symlink(root, error).string());
  throw refusal(
      fmt::format("process {} sees no /proc: its root directory is {} (chroot)", pid, directory),
      fmt::format("Give it one: mkdir -p {}/proc; mount --bind /proc {}/proc", directory,
                  directory));
}

}  // namespace

void throw_not_permitted(pid_t pid, int error) {
  require_no_end(pid);
  require_no_tracer(pid);
  throw not_permitted(pid, error, trace_rights(pid));
}

std::string program_of(pid_t pid) {
  std::string identity;
  const RemoteMemory memory{pid};
  if (const auto at = memory.auxiliary_value(AT_RANDOM)) {
    std::array<char, 16> random{};
    memory.read(*at, random.data(), random.size());
    identity = fmt::format("{:x} {}", *at, std::string_view{random.data(), random.size()});
  }
  return identity;
}

void require_attachable(pid_t pid) {
  require_state(pid);
  require_program(RemoteMemory{pid});
  require_proc(pid);
  require_harmless_filters(pid);
}

}  // namespace oomrec::tools::processes
