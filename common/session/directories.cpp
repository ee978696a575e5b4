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

// File systems that wait for another machine, or for a process: a store into a mapping must not.
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

bool is_named(const char* directory) noexcept {
  return directory != nullptr && directory[0] != '\0';
}

// What getdents64 returns.
struct Entry {
  std::uint64_t inode;
  std::int64_t next;
  std::uint16_t entry_bytes;
  std::uint8_t type;
  char name[];
};

// A dead session's file, as it is remembered while the directory is read.
struct Dead {
  std::int64_t modified_s;
  std::uint64_t bytes;
  bool of_no_use;
  char name[112];
};

bool is_session_name(std::string_view name) noexcept {
  const std::string_view suffix{kFileSuffix};
  return name.size() > suffix.size() && name.size() < sizeof(Dead::name) &&
         name.substr(name.size() - suffix.size()) == suffix;
}

// A file younger than this may not be a session yet.
constexpr std::int64_t kYoung_s = 30;

constexpr std::uint64_t kMostPid = 1 << 22;  // PID_MAX_LIMIT

// Takes the last of the parts that '-' separates off `name`; 0 where it is no number.
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

// It may say why its process ended, and how its children did.
bool lost_children(const File& file) noexcept {
  std::uint32_t count = 0;
  const long got = file.read_at(offsetof(Header, ended_count), &count, sizeof count);
  return got == static_cast<long>(sizeof count) && count != 0;
}

bool is_dead(const File& directory, const char* name, Dead& dead) noexcept {
  // At once, whatever it is: a pipe would wait for its other end.
  const File file = File::open_at(directory.descriptor(), name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  struct stat facts;
  if (!file.is_open() || call(SYS_fstat, file.descriptor(), &facts) != 0 ||
      !S_ISREG(facts.st_mode)) {
    return false;
  }
  dead.modified_s = facts.st_mtim.tv_sec;
  dead.bytes = static_cast<std::uint64_t>(facts.st_blocks) * 512;
  Text{dead.name} << name;

  // As far as life_of() looks; the tables that follow are not read.
  constexpr std::size_t kStart = offsetof(Header, python);
  alignas(Header) std::byte start[kStart] = {};
  const bool whole = file.read(start, kStart) == static_cast<long>(kStart);
  const Header& header = *reinterpret_cast<const Header*>(start);
  const auto state = static_cast<State>(header.state.load());
  if (!whole || header.magic != kMagic || state == State::starting) {
    dead.of_no_use = true;
    return never_began(maker_of(name), dead.modified_s);
  }
  const bool left = state == State::exited || state == State::replaced;
  dead.of_no_use = left && header.failures_total.load() == 0 && !lost_children(file);
  return life_of(header) == Life::dead;
}

}  // namespace

bool directory_in(Place place, const Wishes& wishes, Text& path) noexcept {
  const char* base = nullptr;
  struct statfs facts {};
  switch (place) {
    case Place::session_directory:
      base = wishes.session_directory;
      break;
    case Place::dump_directory:
      base = wishes.dump_directory;
      if (is_named(base) && (call(SYS_statfs, base, &facts) != 0 || !is_local(facts))) return false;
      break;
    case Place::shared_memory:
      base = "/dev/shm";
      if (call(SYS_statfs, base, &facts) != 0 ||
          wishes.budget_bytes / static_cast<std::uint64_t>(facts.f_bsize) > facts.f_bavail / 8) {
        return false;
      }
      break;
    case Place::temporary:
      base = system::g_roots.temporary;
      break;
    case Place::count_:
      break;
  }
  if (!is_named(base)) return false;
  path.clear();
  if (base[0] != '/') {
    char here[1024];
    if (call(SYS_getcwd, here, sizeof(here)) <= 0) return false;
    path << here << '/';
  }
  path << base << "/oomrec-";
  path.number(static_cast<std::uint64_t>(call(SYS_geteuid)));
  return !path.truncated();
}

File open_own_directory(const char* path, bool create) noexcept {
  const long made = create ? call(SYS_mkdir, path, 0700) : 0;
  File directory = File::open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW);
  struct stat facts;
  if (!directory.is_open())
    return made < 0 && made != -EEXIST ? File::refused(static_cast<int>(-made))
                                       : std::move(directory);
  const bool own = call(SYS_fstat, directory.descriptor(), &facts) == 0 &&
                   facts.st_uid == static_cast<uid_t>(call(SYS_geteuid));
  const bool closed = own && ((facts.st_mode & 077) == 0 ||
                              (create && call(SYS_fchmod, directory.descriptor(), 0700) == 0));
  if (!closed) directory = File::refused(EPERM);
  return directory;
}

// HOST-PID-START-RANDOM.session, and a host's name may have any number of '-'.
Maker maker_of(std::string_view file_name) noexcept {
  if (!is_session_name(file_name)) return {};
  std::string_view rest = file_name.substr(0, file_name.rfind('-'));
  const std::uint64_t start = take_number(rest);
  const std::uint64_t pid = take_number(rest);
  return start == 0 || pid > kMostPid ? Maker{} : Maker{static_cast<std::int32_t>(pid), start};
}

bool never_began(const Maker& maker, std::int64_t modified_s) noexcept {
  const auto now_s = static_cast<std::int64_t>(system::realtime_ns() / 1'000'000'000);
  return maker.pid != 0 && now_s - modified_s > kYoung_s &&
         system::start_ticks(maker.pid) != maker.start_ticks;
}

void enforce_dead_budget(const File& directory, char* scratch, std::size_t scratch_bytes) noexcept {
  constexpr std::size_t kListing = 8 * 1024;
  char* const listing = scratch;
  Dead* const dead = reinterpret_cast<Dead*>(scratch + kListing);
  const std::size_t capacity = (scratch_bytes - kListing) / sizeof(Dead);
  std::size_t count = 0;
  std::uint64_t total_bytes = 0;

  long listed;
  while ((listed = call(SYS_getdents64, directory.descriptor(), listing, kListing)) > 0) {
    for (long at = 0; at < listed;) {
      const auto* const entry = reinterpret_cast<const Entry*>(listing + at);
      at += entry->entry_bytes;
      if (count == capacity || !is_session_name(entry->name)) continue;
      dead[count].of_no_use = false;
      if (!is_dead(directory, entry->name, dead[count])) continue;
      if (dead[count].of_no_use) {
        call(SYS_unlinkat, directory.descriptor(), dead[count].name, 0);
        continue;
      }
      total_bytes += dead[count].bytes;
      ++count;
    }
  }
  std::sort(dead, dead + count,
            [](const Dead& one, const Dead& other) { return one.modified_s < other.modified_s; });
  for (std::size_t oldest = 0;
       oldest < count && (count - oldest > kMaxDeadSessions || total_bytes > kMaxDeadBytes);
       ++oldest) {
    total_bytes -= dead[oldest].bytes;
    call(SYS_unlinkat, directory.descriptor(), dead[oldest].name, 0);
  }
}

}  // namespace oomrec::session
