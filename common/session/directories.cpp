#include "common/session/directories.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/vfs.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "common/session/view.h"
#include "common/system/syscalls.h"

namespace oomrec::session {

namespace {

using system::call;
using system::File;
using system::Text;

// Remote or user-space file systems: a store into a mapping must not wait for another machine or
// process.
constexpr std::uint32_t kRemote[] = {
    0x6969,      // nfs
    0xFF534D42,  // cifs
    0xFE534D42,  // smb2
    0x517B,      // smb
    0x65735546,  // fuse, virtiofs
    0x01021997,  // 9p
    0x00C36400,  // ceph
    0x0BD00BD0,  // lustre
    0x5346414F,  // afs
    0x6B414653,  // kafs
    0x7461636F,  // ocfs2
    0x01161970,  // gfs2
    0x47504653,  // gpfs
    0x19830326,  // beegfs
};

bool is_local(const struct statfs& facts) noexcept {
  return std::find(std::begin(kRemote), std::end(kRemote),
                   static_cast<std::uint32_t>(facts.f_type)) == std::end(kRemote);
}

bool is_set(const char* directory) noexcept { return directory != nullptr && directory[0] != '\0'; }

std::uint64_t user() noexcept { return static_cast<std::uint64_t>(call(SYS_geteuid)); }

// Recordings must not use up memory that other programs need.
bool has_room(const char* base, std::uint64_t budget_bytes) noexcept {
  struct statfs facts {};
  return call(SYS_statfs, base, &facts) == 0 &&
         budget_bytes / static_cast<std::uint64_t>(facts.f_bsize) <= facts.f_bavail / 8;
}

// After `sudo -E` XDG_RUNTIME_DIR is another user's, who could rename what we create there.
bool is_private(const char* directory) noexcept {
  struct stat facts;
  return call(SYS_newfstatat, AT_FDCWD, directory, &facts, 0) == 0 && facts.st_uid == user() &&
         (facts.st_mode & 077) == 0;
}

// XDG_RUNTIME_DIR, or where it is for the processes that have no such variable.
const char* runtime_base(Text& buffer) noexcept {
  if (system::g_roots.runtime[0] != '\0') return system::g_roots.runtime;
  (buffer << "/run/user/").number(user());
  return buffer.c_str();
}

// An entry that getdents64 returns.
struct Entry {
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t entry_bytes;
  std::uint8_t type;
  char name[];
};

// The session file of a dead process.
struct DeadSession {
  std::int64_t modified_s;
  std::uint64_t bytes;
  bool is_disposable;
  char name[112];
};

bool is_session_name(std::string_view name) noexcept {
  const std::string_view suffix{kFileSuffix};
  return name.size() > suffix.size() && name.size() < sizeof(DeadSession::name) &&
         name.substr(name.size() - suffix.size()) == suffix;
}

// A younger file may still be in preparation.
constexpr std::int64_t kMinAge_s = 30;

constexpr std::uint64_t kMaxPid = 1 << 22;  // PID_MAX_LIMIT

// Removes and returns the last number of `name`, after a '-'; 0: not a number.
std::uint64_t take_number(std::string_view& name) noexcept {
  const std::size_t dash = name.rfind('-');
  if (dash == std::string_view::npos) return 0;
  std::uint64_t number = 0;
  for (const char c : name.substr(dash + 1)) {
    if (c < '0' || c > '9' || number > ~std::uint64_t{0} / 16) return 0;
    number = number * 10 + static_cast<std::uint64_t>(c - '0');
  }
  name = name.substr(0, dash);
  return number;
}

// Such a session may explain how its process and its children ended.
bool has_ended_children(const File& file) noexcept {
  std::uint32_t count = 0;
  const long got = file.read_at(offsetof(Header, ended_count), &count, sizeof count);
  return got == static_cast<long>(sizeof count) && count != 0;
}

bool is_dead(const File& directory, const char* name, DeadSession& dead) noexcept {
  // Never blocks: opening a pipe would wait for its other end.
  const File file = File::open_at(directory.descriptor(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat facts;
  if (!file.is_open() || call(SYS_fstat, file.descriptor(), &facts) != 0 ||
      !S_ISREG(facts.st_mode)) {
    return false;
  }
  dead.modified_s = facts.st_mtim.tv_sec;
  dead.bytes = static_cast<std::uint64_t>(facts.st_blocks) * 512;
  Text{dead.name} << name;

  alignas(Header) std::byte start[HeaderStart::kBytes] = {};
  const bool whole = file.read(start, sizeof start) == static_cast<long>(sizeof start);
  const HeaderStart header{start};
  const State state = header.state();
  if (!whole || header.magic() != kMagic || state == State::starting) {
    dead.is_disposable = true;
    return was_never_completed(creator_of(name), dead.modified_s);
  }
  const bool left = state == State::exited || state == State::replaced;
  dead.is_disposable = left && header.failures_total() == 0 && !has_ended_children(file);
  return life_of(header) == Life::dead;
}

}  // namespace

bool directory_in(const Directory& directory, const DirectoryOptions& options) noexcept {
  const char* base = nullptr;
  struct statfs facts {};
  char runtime[32];
  Text runtime_text{runtime};
  switch (directory.kind) {
    case DirectoryKind::session_directory:
      base = options.session_directory;
      break;
    case DirectoryKind::dump_directory:
      base = options.dump_directory;
      if (is_set(base) && (call(SYS_statfs, base, &facts) != 0 || !is_local(facts))) return false;
      break;
    case DirectoryKind::shared_memory:
    case DirectoryKind::spare_shared_memory:
      base = "/dev/shm";
      if (!has_room(base, options.budget_bytes)) return false;
      break;
    case DirectoryKind::temporary:
    case DirectoryKind::spare_temporary:
      base = system::g_roots.temporary;
      break;
    case DirectoryKind::runtime:
      base = runtime_base(runtime_text);
      if (!is_private(base) || !has_room(base, options.budget_bytes)) return false;
      break;
    case DirectoryKind::count_:
      break;
  }
  if (!is_set(base)) return false;
  Text& path = directory.path;
  path.clear();
  if (base[0] != '/') {
    char here[1024];
    if (call(SYS_getcwd, here, sizeof(here)) <= 0) return false;
    path << here << '/';
  }
  (path << base << "/oomrec-").number(user());
  if (directory.spare != 0) (path << '.').number(directory.spare);
  return !path.truncated();
}

File open_own_directory(const char* path, IfMissing missing) noexcept {
  const bool create = missing == IfMissing::create;
  const long made = create ? call(SYS_mkdirat, AT_FDCWD, path, 0700) : 0;
  if (made < 0 && made != -EEXIST) return File::failed(static_cast<int>(-made));
  File directory = File::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  const int error = directory.error();
  if (error == EACCES || error == ENOTDIR || error == ELOOP) return File::failed(kTaken);
  struct stat facts;
  if (!directory.is_open()) return directory;
  if (call(SYS_fstat, directory.descriptor(), &facts) != 0 || facts.st_uid != user())
    return File::failed(kTaken);
  const bool is_closed_to_others =
      (facts.st_mode & 077) == 0 || (create && call(SYS_fchmod, directory.descriptor(), 0700) == 0);
  return is_closed_to_others ? std::move(directory) : File::failed(EPERM);
}

// HOST-PID-START-RANDOM.session; a host's name may contain any number of '-'.
Creator creator_of(std::string_view file_name) noexcept {
  if (!is_session_name(file_name)) return {};
  std::string_view rest = file_name.substr(0, file_name.rfind('-'));
  const std::uint64_t start = take_number(rest);
  const std::uint64_t pid = take_number(rest);
  return start == 0 || pid > kMaxPid ? Creator{} : Creator{static_cast<std::int32_t>(pid), start};
}

bool was_never_completed(const Creator& creator, std::int64_t modified_s) noexcept {
  const auto now_s = static_cast<std::int64_t>(system::realtime_ns() / 1'000'000'000);
  return creator.pid != 0 && now_s - modified_s > kMinAge_s &&
         system::start_ticks(creator.pid) != creator.start_ticks;
}

void enforce_dead_budget(const File& directory, char* scratch, std::size_t scratch_bytes) noexcept {
  constexpr std::size_t kListing = 8 * 1024;
  char* const listing = scratch;
  DeadSession* const dead = reinterpret_cast<DeadSession*>(scratch + kListing);
  const std::size_t capacity = (scratch_bytes - kListing) / sizeof(DeadSession);
  std::size_t count = 0;
  std::uint64_t total_bytes = 0;

  long listed;
  while ((listed = call(SYS_getdents64, directory.descriptor(), listing, kListing)) > 0) {
    for (long at = 0; at < listed;) {
      const auto* const entry = reinterpret_cast<const Entry*>(listing + at);
      at += entry->entry_bytes;
      if (count == capacity || !is_session_name(entry->name)) continue;
      dead[count].is_disposable = false;
      if (!is_dead(directory, entry->name, dead[count])) continue;
      if (dead[count].is_disposable) {
        call(SYS_unlinkat, directory.descriptor(), dead[count].name, 0);
        continue;
      }
      total_bytes += dead[count].bytes;
      ++count;
    }
  }
  std::sort(dead, dead + count, [](const DeadSession& one, const DeadSession& other) {
    return one.modified_s < other.modified_s;
  });
  for (std::size_t oldest = 0;
       oldest < count && (count - oldest > kMaxDeadSessions || total_bytes > kMaxDeadBytes);
       ++oldest) {
    total_bytes -= dead[oldest].bytes;
    call(SYS_unlinkat, directory.descriptor(), dead[oldest].name, 0);
  }
}

}  // namespace oomrec::session
