// Creates a session: chooses a directory, creates the file, fills in its header.
#include <errno.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <string_view>

#include "common/machine/page.h"
#include "common/session/directories.h"
#include "common/session/secrets.h"
#include "common/system/syscalls.h"
#include "recorder/session/alive.h"
#include "recorder/session/writer.h"

namespace oomrec::session {

namespace {

using system::call;
using system::File;
using system::Text;

constexpr u64 kSampledBudget = u64{16} << 20;
constexpr u64 kExactBudget = u64{256} << 20;
constexpr u64 kLeastBytes = u64{256} << 10;  // too small for a useful recording below this

// For create() only.
alignas(8) constinit char g_scratch[kMaxStringBytes];

// The file's size: sparse, the most that it may ever need. Chunks that are not full yet may lie
// beyond the budget. Exceeding RLIMIT_FSIZE would raise SIGXFSZ.
u64 file_bytes_for(u64 budget_bytes, u64 most) noexcept {
  const u64 wanted = std::max(2 * budget_bytes, kSegmentBytes);
  return machine::page_down(std::min({wanted, most, kMostBytes}));
}

// The part of an exact recording's budget that is left for samples when the rest is used up.
u64 reserve_bytes(u64 budget_bytes) noexcept {
  return std::min(budget_bytes / 2, std::max(budget_bytes / 8, u64{1} << 20));
}

u64 largest_file() noexcept {
  rlimit limit{};
  if (call(SYS_prlimit64, 0, RLIMIT_FSIZE, nullptr, &limit) != 0) return ~u64{0};
  return limit.rlim_cur == RLIM_INFINITY ? ~u64{0} : limit.rlim_cur;
}

// The host's name: letters, digits, '.' and '-'; '_' for anything else.
void append_host(Text& name) noexcept {
  utsname facts;
  if (call(SYS_uname, &facts) != 0) return;
  for (const char* at = facts.nodename; *at != '\0' && at < facts.nodename + 40; ++at) {
    const bool plain = (*at >= 'a' && *at <= 'z') || (*at >= 'A' && *at <= 'Z') ||
                       (*at >= '0' && *at <= '9') || *at == '.' || *at == '-';
    name << (plain ? *at : '_');
  }
}

template <std::size_t N>
void copy_name(char (&to)[N], const char* from) noexcept {
  Text{to} << std::string_view{from, strnlen(from, N - 1)};
}

std::string_view base_name(std::string_view path) noexcept {
  return path.substr(path.rfind('/') + 1);
}

// The name by which this image was started. In a forked server the arguments may be its state.
constinit char g_started_name[64] = {};

// The name by which the program was started, as the first of its arguments has it. None if that is
// no file's name: a login shell's begins with '-', and a server may have put its state there
// ("nginx: master process").
void find_started_name(std::string_view arguments) noexcept {
  const std::string_view name = base_name(arguments.substr(0, arguments.find('\0')));
  const bool is_name =
      !name.starts_with('-') && name.size() < sizeof g_started_name &&
      std::all_of(name.begin(), name.end(), [](char c) noexcept { return c > ' ' && c != ':'; });
  if (is_name) Text{g_started_name} << name;
}

bool is_in_shared_memory(DirectoryKind kind) noexcept {
  return kind == DirectoryKind::shared_memory || kind == DirectoryKind::spare_shared_memory;
}

bool is_temporary(DirectoryKind kind) noexcept {
  return kind == DirectoryKind::temporary || kind == DirectoryKind::spare_temporary;
}

}  // namespace

bool Session::create(InHook hook, const Settings& settings) noexcept {
  if (active_) return true;
  mode_ = settings.mode;
  pid_ = system::process_id();
  start_ticks_ = system::start_ticks(pid_);
  u64 budget = settings.budget_bytes;
  if (budget == 0) budget = mode_ == Mode::exact ? kExactBudget : kSampledBudget;
  budget = std::max(budget, kLeastBytes);

  if (!open_in_directory(hook, settings, budget) &&
      !open_arena(hook, -1, file_bytes_for(budget, ~u64{0}), budget)) {
    off_reason_ = "no memory for the recording";
    return false;
  }
  if (mode_ == Mode::exact) arena.set_reserve(reserve_bytes(budget));
  header_->mode = static_cast<u8>(settings.mode);
  header_->mode_now.store(static_cast<u32>(settings.mode));
  header_->interval_bytes = settings.interval_bytes;
  header_->large_bytes = settings.large_bytes;
  header_->soft_limit_bytes.store(settings.soft_limit_bytes);
  header_->limit_reserve_bytes.store(settings.limit_reserve_bytes);
  active_ = true;
  describe_process(hook, settings);
  header_->state.store(static_cast<u32>(State::running), std::memory_order_release);
  return true;
}

bool Session::open_in_directory(InHook hook, const Settings& settings, u64 budget) noexcept {
  const DirectoryOptions options{settings.session_directory, settings.dump_directory, budget};
  const bool is_named =
      options.session_directory != nullptr && options.session_directory[0] != '\0';
  // Not writable by others whatever the umask: they could rename our own directory in it.
  made_directory_ = is_named && call(SYS_mkdirat, AT_FDCWD, options.session_directory, 0755) == 0;
  preferred_[0] = '\0';
  directory_error_ = is_named ? ENAMETOOLONG : 0;
  int shared_memory_error = 0, temporary_error = 0, other_error = 0;  // of the last name there
  char buffer[sizeof(path_) - 128];
  Text path{buffer};
  return find_directory(options, path, [&](const session::Directory& found) noexcept {
    int& last_error = is_in_shared_memory(found.kind) ? shared_memory_error
                      : is_temporary(found.kind)      ? temporary_error
                                                      : other_error;
    if (found.spare != 0 && last_error != kTaken) return false;
    const File directory = open_own_directory(path.c_str(), IfMissing::create);
    const int error =
        directory.is_open() ? open_file(hook, path.c_str(), directory, budget) : directory.error();
    last_error = error;
    if (is_named ? found.kind == DirectoryKind::session_directory
                 : found.kind >= DirectoryKind::shared_memory && preferred_[0] == '\0') {
      Text{preferred_} << path.view();
      directory_error_ = error;
    }
    if (error == 0) enforce_dead_budget(directory, g_scratch, sizeof(g_scratch));
    return error == 0;
  });
}

int Session::open_file(InHook hook, const char* directory_path, const File& directory,
                       u64 budget) noexcept {
  const u64 file_bytes = file_bytes_for(budget, largest_file());
  if (file_bytes < kLeastBytes) return EFBIG;
  u64 random = 0;
  system::random_bytes(&random, sizeof(random));

  Text path{path_};
  path << directory_path << '/';
  const std::size_t name = path.size();
  append_host(path);
  (path << '-').number(static_cast<u64>(pid_));
  (path << '-').number(start_ticks_);
  (path << '-').hex(random & 0xffff'ffff, 8) << kFileSuffix;

  const File file = path.truncated() ? File::failed(ENAMETOOLONG)
                                     : File::open_at(directory.descriptor(), path_ + name,
                                                     O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, 0600);
  int error = file.error();
  if (file.is_open()) {
    const long cut = call(SYS_ftruncate, file.descriptor(), file_bytes);
    if (cut == 0 && open_arena(hook, file.descriptor(), file_bytes, budget)) return 0;
    error = cut != 0 ? static_cast<int>(-cut) : ENOSPC;
    call(SYS_unlinkat, directory.descriptor(), path_ + name, 0);
  }
  path.clear();
  return error;
}

bool Session::open_arena(InHook hook, int descriptor, u64 file_bytes, u64 budget) noexcept {
  if (!arena.open(hook, descriptor, file_bytes, budget)) return false;
  if (arena.take(hook, kHeaderBytes) == 0 && arena.populate(hook, 0, kHeaderBytes)) {
    header_ = reinterpret_cast<Header*>(arena.at(0));
    header_->magic = kMagic;
    header_->version = kVersion;
    header_->header_bytes = static_cast<u32>(kHeaderBytes);
    header_->file_bytes = file_bytes;
    header_->page_bytes = static_cast<u32>(machine::page_bytes());
    header_->pid = pid_;
    header_->start_ticks = start_ticks_;
    header_->pid_namespace = system::pid_namespace();
    system::boot_id(header_->boot_id);
    // Lock the mutex's page in memory: if it has been written out, as in a cgroup at its limit, the
    // kernel does not read it again to mark the death of a process that it has killed.
    if (descriptor >= 0) call(SYS_mlock, header_, sizeof(header_->alive_mutex));
    if (open_tables(hook) && start_life(*header_)) return true;
  }
  arena.close(hook, FirstPage::unmapped);
  header_ = nullptr;
  return false;
}

void Session::describe_process(InHook hook, const Settings& settings) noexcept {
  Header& header = *header_;
  header.parent_pid = static_cast<i32>(call(SYS_getppid));
  // By the coarse clock, like the events, so that no event is before the start.
  header.start_monotonic_ns = system::coarse_ns();
  header.start_realtime_ns =
      system::realtime_ns() - (system::monotonic_ns() - header.start_monotonic_ns);
  copy_name(header.oomrec_version, OOMREC_VERSION);
  utsname names;
  if (call(SYS_uname, &names) == 0) copy_name(header.host, names.nodename);
  struct sysinfo memory;
  if (call(SYS_sysinfo, &memory) == 0) {
    header.ram_bytes = memory.totalram * memory.mem_unit;
    header.swap_bytes = memory.totalswap * memory.mem_unit;
  }

  long bytes = system::read_file("/proc/self/cmdline", g_scratch, sizeof(g_scratch));
  if (bytes > 0) {
    if (g_started_name[0] == '\0') find_started_name({g_scratch, static_cast<std::size_t>(bytes)});
    const auto as_recorded = settings.only_names_of_options ? keep_names : mask_secrets;
    header.command_line =
        add_string(hook, {g_scratch, as_recorded(g_scratch, static_cast<std::size_t>(bytes))});
  }
  bytes = call(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", g_scratch, sizeof(g_scratch));
  if (bytes > 0) {
    const std::string_view executable{g_scratch, static_cast<std::size_t>(bytes)};
    header.executable = add_string(hook, executable);
    const std::string_view file = base_name(executable), started{g_started_name};
    // "python3" is the less telling name of python3.11.
    if (!started.empty() && !file.starts_with(started) && !started.starts_with(file))
      header.program = add_string(hook, started);
  }
  bytes = call(SYS_getcwd, g_scratch, sizeof(g_scratch));
  if (bytes > 1) {  // its NUL counts
    header.working_directory = add_string(hook, {g_scratch, static_cast<std::size_t>(bytes) - 1});
  }
  if (settings.dump_directory != nullptr) {
    header.dump_directory = add_string(hook, settings.dump_directory);
  }
}

}  // namespace oomrec::session
