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
#include <optional>

#include "common/session/layout.h"
#include "tools/base/error.h"
#include "tools/base/text.h"
#include "tools/processes/attach/call_guard.h"
#include "tools/processes/attach/idle_copy.h"
#include "tools/processes/attach/refusal.h"
#include "tools/processes/attach/remote_call.h"
#include "tools/processes/attach/remote_memory.h"
#include "tools/processes/attach/remote_module.h"
#include "tools/processes/attach/target.h"
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
  VisibleLibrary(pid_t pid, const std::string& library, bool is_loaded)
      : root_(root_of(pid)), path_(library) {
    // The loader takes a second copy from another file only.
    if (!is_loaded && is_same_file(root_ + library, library)) return;
    for (const std::string directory : {"/tmp", "/var/tmp", "/dev/shm", "/run"})
      if (copy_to(pid, library, directory)) return;
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

bool is_recorder(const RemoteModule& module) { return module.file_name().starts_with("liboomrec"); }

// oomrec_attached (shim/attach/attach.cpp)
enum class CopyState : int { unused, records, is_idle };

struct LoadedCopy {
  RemoteModule module;
  CopyState state = CopyState::unused;
};
std::vector<LoadedCopy> loaded_copies(const RemoteMemory& memory) {
  std::vector<LoadedCopy> copies;
  for (RemoteModule& module : remote_modules(memory)) {
    if (!is_recorder(module)) continue;
    CopyState state = CopyState::unused;
    const std::uint64_t flag = module.address_of("oomrec_attached");
    if (flag == 0 || !memory.read(flag, state)) state = CopyState::unused;
    copies.push_back({std::move(module), state});
  }
  return copies;
}

std::string build_id_of(const std::string& library) {
  elf_version(EV_CURRENT);
  const int file = open(library.c_str(), O_RDONLY | O_CLOEXEC);
  Elf* const elf = elf_begin(file, ELF_C_READ, nullptr);
  const void* bits = nullptr;
  const ssize_t bytes = dwelf_elf_gnu_build_id(elf, &bits);
  const std::string id{static_cast<const char*>(bits),
                       static_cast<std::size_t>(std::max<ssize_t>(bytes, 0))};
  elf_end(elf);
  close(file);
  return id;
}

// A copy of this very library that may record again; nullptr: none.
const RemoteModule* free_copy(const RemoteMemory& memory, const std::vector<LoadedCopy>& copies,
                              const std::string& library) {
  const std::string id = build_id_of(library);
  for (const LoadedCopy& copy : copies) {
    std::int64_t thread_state = 0;
    if (copy.state != CopyState::is_idle || id.empty() || copy.module.build_id() != id ||
        !memory.read(copy.module.address_of("oomrec_thread_state"), thread_state))
      continue;
    if (free_idle_copy(memory, copy.module, thread_state)) return &copy.module;
  }
  return nullptr;
}

// Where a function of the library begins, seen from where the library does.
std::uint64_t offset_of(const std::string& library, std::string_view function) {
  elf_version(EV_CURRENT);
  const int file = open(library.c_str(), O_RDONLY | O_CLOEXEC);
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
  close(file);
  if (offset != 0) return offset;
  throw refusal(fmt::format("{} has no {}", printable(library), function),
                "It is of another version: reinstall oomrec, or unset OOMREC_LIBRARY.");
}

bool is_recorded(pid_t pid) {
  const auto process = recording::live_process(pid);
  return process && process->recording->header().state.load() ==
                        static_cast<std::uint32_t>(session::State::running);
}

// What the function in the process gets. The first one is for the programs that the process starts.
std::string joined(pid_t pid, const std::string& library,
                   const std::vector<std::pair<std::string, std::string>>& settings) {
  std::string text;
  if (is_same_file(root_of(pid) + library, library)) {
    text += fmt::format("LD_PRELOAD={}", library);
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
          static_cast<std::uint64_t>((std::chrono::steady_clock::now() - begin).count())};
}

}  // namespace

Attached attach_to(pid_t pid, const std::string& library,
                   const std::vector<std::pair<std::string, std::string>>& settings) {
  const auto begin = std::chrono::steady_clock::now();
  const CallGuard guard{pid};
  require_attachable(pid);
  if (is_recorded(pid))
    throw refusal(
        fmt::format("process {} is recorded already", pid),
        fmt::format("Look at it: oomrec top {}; or end it: oomrec attach --detach {}", pid, pid));
  RemoteRequest request;
  request.pid = pid;
  request.argument = joined(pid, library, settings);
  const RemoteMemory memory{pid};
  std::vector<LoadedCopy> copies = loaded_copies(memory);
  // In a fork's child that is not recorded, the parent's copy is still in its calls.
  for (LoadedCopy& copy : copies) {
    if (copy.state != CopyState::records) continue;
    RemoteRequest end;
    end.pid = pid;
    end.function = copy.module.address_of("oomrec_detach");
    call_remotely(end);
    copy.state = CopyState::is_idle;
  }
  std::optional<VisibleLibrary> visible;
  if (const RemoteModule* const copy = free_copy(memory, copies, library)) {
    request.function = copy->address_of("oomrec_attach");
  } else {
    visible.emplace(pid, library, !copies.empty());
    request.library = visible->path();
    request.function = offset_of(library, "oomrec_attach");
  }
  const RemoteResult result = call_remotely(request);
  if (result.problem.find("static TLS") != std::string::npos)
    throw refusal(
        fmt::format(
            "process {} has no room for one more copy of {}: threads of it still are in {} others",
            pid, kLibrary, copies.size()),
        "Restart the program to record it again.");
  if (!result.is_known && !is_recorded(pid))
    throw refusal(fmt::format("process {} is not recorded, and this command got no processor while "
                              "it was to be begun",
                              pid),
                  "Try again.");
  if (!result.problem.empty())
    throw refusal(fmt::format("process {} is not recorded: {}", pid, printable(result.problem)),
                  "The process goes on without the recorder.");
  return attached(result, begin);
}

Attached detach_from(pid_t pid) {
  const auto begin = std::chrono::steady_clock::now();
  const CallGuard guard{pid};
  require_attachable(pid);
  RemoteRequest request;
  request.pid = pid;
  for (const LoadedCopy& copy : loaded_copies(RemoteMemory{pid}))
    if (copy.state == CopyState::records)
      request.function = copy.module.address_of("oomrec_detach");
  if (request.function == 0)
    throw Error{Exit::nothing_found, fmt::format("process {} is not attached to", pid),
                fmt::format("To attach: oomrec attach {}", pid)};
  const RemoteResult result = call_remotely(request);
  if (!result.problem.empty())
    throw Error{Exit::nothing_found, fmt::format("process {}: {}", pid, printable(result.problem)),
                fmt::format("To attach: oomrec attach {}", pid)};
  return attached(result, begin);
}

}  // namespace oomrec::tools::processes
