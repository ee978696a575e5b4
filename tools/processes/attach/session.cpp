#include "tools/processes/attach/session.h"

#include <elfutils/libdwelf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <gelf.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <filesystem>

#include "common/session/layout.h"
#include "tools/base/descriptor.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/processes/attach/call_guard.h"
#include "tools/processes/attach/gpu_memory.h"
#include "tools/processes/attach/permission.h"
#include "tools/processes/attach/recorder_copies.h"
#include "tools/processes/attach/remote_call.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/attach/target.h"
#include "tools/processes/attach/tracee.h"
#include "tools/recording/live/processes.h"

namespace oomrec::tools::processes {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "liboomrec.so";

bool is_same_file(const std::string& one, const std::string& other) {
  struct stat a {
  }, b{};
  return stat(one.c_str(), &a) == 0 && stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

std::string root_of(pid_t pid) { return fmt::format("/proc/{}/root", pid); }

// The library where the process can load it: the file itself, or a copy, which is removed once it
// is loaded.
class VisibleLibrary {
 public:
  enum class As : bool { itself, copy };

  VisibleLibrary(pid_t pid, const std::string& library, As as)
      : root_(root_of(pid)), path_(library) {
    if (as == As::itself && is_same_file(root_ + library, library)) return;
    for (const std::string directory : {"/tmp", "/var/tmp", "/dev/shm", "/run"})
      if (copy_to(pid, library, directory)) return;
    if (has_ended(pid)) throw_ended(pid);
    throw refusal(
        fmt::format("process {} sees no directory to which {} can be copied", pid, kLibrary),
        "Its container needs a writable /tmp, /var/tmp, /dev/shm or /run without noexec.");
  }
  ~VisibleLibrary() {
    if (is_copy_) unlink((root_ + path_).c_str());
  }
  VisibleLibrary(const VisibleLibrary&) = delete;
  VisibleLibrary& operator=(const VisibleLibrary&) = delete;

  const std::string& path() const { return path_; }  // as the process sees it
  bool is_copy() const { return is_copy_; }

 private:
  bool copy_to(pid_t pid, const std::string& library, const std::string& directory) {
    struct statvfs system {};
    if (statvfs((root_ + directory).c_str(), &system) != 0 ||
        (system.f_flag & (ST_NOEXEC | ST_RDONLY)) != 0)
      return false;
    path_ = fmt::format("{}/liboomrec-{}-{}.so", directory, pid, getpid());
    std::error_code error;
    fs::copy_file(library, root_ + path_, error);
    if (error) return false;
    is_copy_ = true;
    fs::permissions(root_ + path_, fs::perms{0755}, error);
    return true;
  }

  const std::string root_;
  std::string path_;
  bool is_copy_ = false;
};

struct LoadedCopy {
  RemoteModule module;
  CopyState state = CopyState::unused;
};
std::vector<LoadedCopy> loaded_copies(const RemoteMemory& memory) {
  std::vector<LoadedCopy> copies;
  for (RemoteModule& module : remote_modules(memory)) {
    if (!is_recorder(module)) continue;
    const CopyState state = state_of(memory, module);
    copies.push_back({std::move(module), state});
  }
  return copies;
}

std::string build_id_of(const std::string& library) {
  elf_version(EV_CURRENT);
  const Descriptor file = open(library.c_str(), O_RDONLY | O_CLOEXEC);
  Elf* const elf = elf_begin(file, ELF_C_READ, nullptr);
  const void* bits = nullptr;
  const ssize_t bytes = dwelf_elf_gnu_build_id(elf, &bits);
  std::string id{static_cast<const char*>(bits),
                 static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
  elf_end(elf);
  return id;
}

// Until all threads have left a copy, for all copies together. A hook lasts some microseconds, but
// on a busy machine its thread may wait for a processor.
constexpr std::chrono::milliseconds kPatience{3000};

// A copy of this very library that may record again; nullptr: none.
const RemoteModule* free_copy(const RemoteMemory& memory, const std::vector<LoadedCopy>& copies,
                              const std::string& library) {
  const std::string id = build_id_of(library);
  const auto until = std::chrono::steady_clock::now() + kPatience;
  for (const LoadedCopy& copy : copies) {
    std::int64_t thread_state = 0;
    if (copy.state != CopyState::is_idle || id.empty() || copy.module.build_id() != id ||
        !memory.read(copy.module.address_of("oomrec_thread_state"), thread_state))
      continue;
    if (free_idle_copy(memory, copy.module, thread_state, until)) return &copy.module;
  }
  return nullptr;
}

// Where a function of the library begins, seen from where the library does.
std::uint64_t offset_of(const std::string& library, std::string_view function) {
  elf_version(EV_CURRENT);
  const Descriptor file = open(library.c_str(), O_RDONLY | O_CLOEXEC);
  Elf* const elf = elf_begin(file, ELF_C_READ, nullptr);
  std::uint64_t offset = 0;
  for (Elf_Scn* section = elf_nextscn(elf, nullptr); section != nullptr;
       section = elf_nextscn(elf, section)) {
    GElf_Shdr header;
    if (gelf_getshdr(section, &header) == nullptr || header.sh_type != SHT_DYNSYM) continue;
    Elf_Data* const data = elf_getdata(section, nullptr);
    GElf_Sym symbol;
    for (int i = 0; gelf_getsym(data, i, &symbol) != nullptr; ++i) {
      const char* const name = elf_strptr(elf, header.sh_link, symbol.st_name);
      if (name != nullptr && function == name) offset = symbol.st_value;
    }
  }
  elf_end(elf);
  if (offset != 0) return offset;
  throw refusal(fmt::format("{} has no {}", printable(library), function),
                "It is of another version: reinstall oomrec, or unset OOMREC_LIBRARY.");
}

bool is_recorded(pid_t pid) {
  const auto process = recording::live_process(pid);
  return process && process->recording->header().state.load() ==
                        static_cast<std::uint32_t>(session::State::running);
}

using Settings = std::vector<std::pair<std::string, std::string>>;

// What the function in the process gets. `preload`: for the programs that the process starts;
// empty: they do not see the library.
std::string joined(const std::string& preload, const Settings& settings) {
  std::string text;
  if (!preload.empty()) {
    text += fmt::format("LD_PRELOAD={}", preload);
    text += '\0';
  }
  for (const auto& [variable, value] : settings) {
    text += fmt::format("{}={}", variable, value);
    text += '\0';
  }
  return text;
}

Attached attached(const RemoteResult& result, std::chrono::steady_clock::time_point begin) {
  return {result.thread, result.paused_ns,
          static_cast<std::uint64_t>((std::chrono::steady_clock::now() - begin).count()), ""};
}

// In a fork's child that is not recorded, the parent's copy is still in its calls.
void end_inherited_recordings(pid_t pid, std::vector<LoadedCopy>& copies) {
  for (LoadedCopy& copy : copies) {
    if (copy.state != CopyState::records) continue;
    call_remotely({.pid = pid, .function = copy.module.address_of("oomrec_detach")});
    copy.state = CopyState::is_idle;
  }
}

// Loads the library into the process, and begins its recording. A process that has given up its
// user's rights since it was started may see the library, and not be allowed to read it: it gets a
// copy, and the programs that it starts are not recorded.
RemoteResult load_and_begin(pid_t pid, const std::string& library, const Settings& settings,
                            VisibleLibrary::As as) {
  const VisibleLibrary visible{pid, library, as};
  const bool is_seen = as == VisibleLibrary::As::itself
                           ? !visible.is_copy()
                           : is_same_file(root_of(pid) + library, library);
  return call_remotely({.pid = pid,
                        .function = offset_of(library, "oomrec_attach"),
                        .argument = joined(is_seen ? library : "", settings),
                        .library = visible.path()});
}

bool is_unreadable(const RemoteResult& result) {
  return result.problem.find("cannot open shared object file: Permission denied") !=
         std::string::npos;
}

RemoteResult begin_recording(pid_t pid, const std::string& library, const Settings& settings,
                             const std::vector<LoadedCopy>& copies) {
  const RemoteMemory memory{pid};
  if (const RemoteModule* const copy = free_copy(memory, copies, library)) {
    const bool is_seen = is_same_file(root_of(pid) + library, library);
    return call_remotely({.pid = pid,
                          .function = copy->address_of("oomrec_attach"),
                          .argument = joined(is_seen ? library : "", settings)});
  }
  // The loader takes a second copy from another file only.
  const auto as = copies.empty() ? VisibleLibrary::As::itself : VisibleLibrary::As::copy;
  RemoteResult result = load_and_begin(pid, library, settings, as);
  if (is_unreadable(result) && as == VisibleLibrary::As::itself)
    result = load_and_begin(pid, library, settings, VisibleLibrary::As::copy);
  return result;
}

// Why the recording has not begun, and what helps.
Error not_recorded(pid_t pid, const std::string& why, const std::string& otherwise) {
  const auto limit = used_up_limit(pid);
  return refusal(
      fmt::format("process {} is not recorded: {}{}", pid, why, limit ? "; " + limit->what : ""),
      limit ? limit->remedy : otherwise);
}

Attached attach_to_program(pid_t pid, const std::string& library, const Settings& settings) {
  const auto begin = std::chrono::steady_clock::now();
  const CallGuard guard{pid};
  require_attachable(pid);
  if (is_recorded(pid))
    throw refusal(
        fmt::format("process {} is recorded already", pid),
        fmt::format(
            "Look at it: oomrec top {0}; write a bundle: oomrec dump {0}; or end it: oomrec "
            "attach --detach {0}",
            pid));
  require_room_in_cgroup(pid);
  std::vector<LoadedCopy> copies = loaded_copies(RemoteMemory{pid});
  end_inherited_recordings(pid, copies);
  const RemoteResult result = begin_recording(pid, library, settings, copies);
  if (result.problem.find("static TLS") != std::string::npos)
    throw refusal(
        fmt::format(
            "process {} has no room for one more copy of {}: threads of it still are in {} others",
            pid, kLibrary, copies.size()),
        "Restart the program to record it again.");
  if (!result.is_known && !is_recorded(pid))
    throw not_recorded(pid,
                       used_up_limit(pid) ? "it has no memory for the call"
                                          : "this command got no processor while it was to begin",
                       "Try again.");
  if (!result.problem.empty())
    throw not_recorded(pid, printable(result.problem), "The process goes on without the recorder.");
  Attached done = attached(result, begin);
  try {
    attach_gpu_memory(pid);
  } catch (const Error& error) {
    done.gpu_problem = error.what();
  }
  return done;
}

}  // namespace

// Whatever is wrong with a program that is being replaced (exec) is not wrong with the next one.
Attached attach_to(pid_t pid, const std::string& library, const Settings& settings) {
  constexpr unsigned kPrograms = 5;
  for (unsigned tried = 0; tried < kPrograms; ++tried) {
    const std::string program = program_of(pid);
    try {
      return attach_to_program(pid, library, settings);
    } catch (const Error&) {
      if (has_ended(pid) || program_of(pid) == program) throw;
    }
  }
  throw refusal(fmt::format("process {} replaces its program again and again (exec)", pid),
                fmt::format("Attach to it later: oomrec attach {}", pid));
}

Attached detach_from(pid_t pid) {
  const auto begin = std::chrono::steady_clock::now();
  const CallGuard guard{pid};
  require_attachable(pid);
  const RemoteMemory memory{pid};
  const std::vector<RemoteModule> modules = remote_modules(memory);
  const RemoteModule* const copy = recording_copy(memory, modules);
  if (copy == nullptr)
    throw Error{Exit::nothing_found, fmt::format("process {} is not attached to", pid),
                fmt::format("To attach: oomrec attach {}", pid)};
  const RemoteResult result =
      call_remotely({.pid = pid, .function = copy->address_of("oomrec_detach")});
  if (!result.problem.empty())
    throw Error{Exit::nothing_found, fmt::format("process {}: {}", pid, printable(result.problem)),
                fmt::format("To attach: oomrec attach {}", pid)};
  return attached(result, begin);
}

}  // namespace oomrec::tools::processes
