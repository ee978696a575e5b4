// A session where system calls fail, or its files are removed.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>

#include "common/session/directories.h"
#include "common/system/syscalls.h"
#include "recorder/session/writer.h"
#include "tests/unit/recorder/session/fixtures.h"

using namespace oomrec::session;
using namespace oomrec;

// --- Sessions without enough disk, address space, a directory or a descriptor

namespace {

// The body returns kPassed, or the number of what it found wrong.
template <class Body>
void passes_in_child(const Body& body) {
  CHECK(status_of_child(body) == kPassed);
}

template <std::size_t kCount>
bool install(const sock_filter (&rules)[kCount]) {
  const sock_fprog program{kCount, const_cast<sock_filter*>(rules)};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

void set_limit(int resource, u64 bytes) {
  const rlimit limit{bytes, bytes};
  REQUIRE(setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0);
}

// Simulates a kernel before Linux 5.14: madvise does not support MADV_POPULATE_WRITE.
bool disable_populate() {
  constexpr u32 kPopulateWrite = 23;
  const sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kPopulateWrite, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(rules);
}

}  // namespace

TEST_CASE("a full disk loses entries but does not kill") {
  const Scratch scratch;
  const bool mounted = mount("tmpfs", scratch.path(), "tmpfs", 0, "size=1m") == 0;
  if (!mounted) {
    MESSAGE("skipped: no right to mount a small tmpfs");
    return;
  }
  passes_in_child([&] {
    const auto session = session_in(scratch.path());
    if (std::string_view{session->path()}.find(scratch.path()) != 0) return 1;
    const u64 appended = append_until_full(*session);
    if (appended < 20'000 || appended > 65'536) return 2;
    if (session->view().count(TableId::nodes) != appended + 1) return 3;
    return kPassed;
  });
  SUBCASE("not even the header fits") {
    std::ofstream{scratch.path() + std::string{"/ballast"}} << std::string(1 << 20, 'x');
    const auto session = session_in(scratch.path());
    CHECK(std::string_view{session->path()}.find(scratch.path()) == std::string_view::npos);
    append_until_full(*session, 1000);
    session->remove_file(kHook);
  }
  umount2(scratch.path(), MNT_DETACH);
}

TEST_CASE("without MADV_POPULATE_WRITE pages are touched by system calls") {
  const Scratch scratch;
  passes_in_child([&] {
    if (!disable_populate()) return 1;
    const auto session = session_in(scratch.path());
    if (!session->arena.is_file()) return 2;
    if (append_until_full(*session, 50'000) != 50'000) return 3;
    Node node{};  // touching the pages left their contents zero
    for (u64 index = 1; index <= 50'000; ++index) {
      if (!session->view().read(TableId::nodes, index, node) || node.parent != 0) return 4;
    }
    return kPassed;
  });
}

TEST_CASE("such a kernel's full disk does not kill either") {
  const Scratch scratch;
  if (mount("tmpfs", scratch.path(), "tmpfs", 0, "size=1m") != 0) {
    MESSAGE("skipped: no right to mount a small tmpfs");
    return;
  }
  passes_in_child([&] {
    if (!disable_populate()) return 1;
    const auto session = session_in(scratch.path());
    if (!session->arena.is_file()) return 2;
    const u64 appended = append_until_full(*session);
    return appended > 20'000 && appended < 65'536 ? kPassed : 3;
  });
  umount2(scratch.path(), MNT_DETACH);
}

TEST_CASE("RLIMIT_FSIZE makes the file shorter, and never SIGXFSZ") {
  const Scratch scratch;
  passes_in_child([&] {
    set_limit(RLIMIT_FSIZE, (3 << 20) + 1234);
    const auto session = session_in(scratch.path());
    if (session->arena.file_bytes() != 3 << 20 || !session->arena.is_file()) return 1;
    const u64 appended = append_until_full(*session);
    if (appended < 60'000) return 2;
    return kPassed;
  });
}

TEST_CASE("without a file the session is private memory") {
  const Scratch scratch;
  passes_in_child([&] {
    set_limit(RLIMIT_FSIZE, 4096);
    Settings settings;
    settings.mode = Mode::exact;
    const auto session = session_in(scratch.path(), settings);
    if (session->arena.is_file() || session->path()[0] != '\0') return 1;
    if (append_until_full(*session, 3'000'000) != 3'000'000) return 2;
    if (session->view().problem() != Problem::none) return 3;
    return kPassed;
  });
  CHECK(files_in(scratch.own()).empty());
}

TEST_CASE("exhausted address space loses entries") {
  if (kSanitized) return;  // its own address space exceeds RLIMIT_AS
  const Scratch scratch;
  passes_in_child([&] {
    Settings settings;
    settings.mode = Mode::exact;
    const auto session = session_in(scratch.path(), settings);
    session->arena.map_ahead(kHook, kSegmentBytes);
    set_limit(RLIMIT_AS, 1 << 20);  // less than is mapped already
    const u64 appended = append_until_full(*session);
    if (appended < 200'000 || appended > 1'000'000) return 1;
    if (session->view().count(TableId::nodes) != appended + 1) return 2;
    Session none;
    if (none.create(kHook, settings) || none.off_reason()[0] == '\0') return 3;
    return kPassed;
  });
}

TEST_CASE("a short recording has some address space ahead") {
  if (kSanitized) return;  // its own address space exceeds RLIMIT_AS
  const Scratch scratch;
  passes_in_child([&] {
    const auto session = session_in(scratch.path());
    set_limit(RLIMIT_AS, 1 << 20);
    const u64 appended = append_until_full(*session);
    if (appended < 5'000 || appended > 100'000) return 1;
    return session->view().count(TableId::nodes) == appended + 1 ? kPassed : 2;
  });
}

TEST_CASE("no system call is made in a sandbox") {
  const Scratch scratch;
  passes_in_child([&] {
    const auto session = session_in(scratch.path());
    system::g_filters = 1;
    const u64 appended = append_until_full(*session);
    if (appended == 0 || appended > 4096) return 1;  // the entries that were populated before
    if (session->add_string(kHook, "still there") == 0) return 2;
    return kPassed;
  });
}

TEST_CASE("no descriptor stays open, and 0 to 2 are untouched") {
  const Scratch scratch;
  passes_in_child([&] {
    close(0);
    close(1);
    close(2);
    const auto session = session_in(scratch.path());
    for (int descriptor = 0; descriptor < 64; ++descriptor) {
      struct stat facts, file;
      if (fstat(descriptor, &facts) != 0) continue;
      if (descriptor < 3 || stat(session->path(), &file) != 0) return 1;
      if (facts.st_ino == file.st_ino) return 2;
    }
    return session->arena.is_file() ? kPassed : 3;
  });
}

TEST_CASE("a directory of another user, or a link, is not used") {
  const Scratch scratch, elsewhere;
  SUBCASE("a symbolic link") {
    REQUIRE(symlink(elsewhere.path(), scratch.own().c_str()) == 0);
    const auto session = session_in(scratch.path());
    CHECK(files_in(elsewhere.path()).empty());
    CHECK(std::string_view{session->path()}.find(scratch.path()) == std::string_view::npos);
    session->remove_file(kHook);
  }
  SUBCASE("another owner") {
    if (geteuid() != 0) return;
    REQUIRE(mkdir(scratch.own().c_str(), 0700) == 0);
    REQUIRE(chown(scratch.own().c_str(), 4711, 4711) == 0);
    const auto session = session_in(scratch.path());
    CHECK(files_in(scratch.own()).empty());
    session->remove_file(kHook);
  }
  SUBCASE("open to others: it is made private") {
    REQUIRE(mkdir(scratch.own().c_str(), 0700) == 0);
    REQUIRE(chmod(scratch.own().c_str(), 0777) == 0);
    const auto session = session_in(scratch.path());
    struct stat facts;
    REQUIRE(stat(scratch.own().c_str(), &facts) == 0);
    CHECK((facts.st_mode & 0777) == 0700);
    CHECK(files_in(scratch.own()).size() == 1);
  }
}

TEST_CASE("without the user's directory the dump directory is used if it exists, else memory") {
  const Scratch scratch;
  Settings settings;
  Session session;
  SUBCASE("it exists") {
    settings.dump_directory = scratch.path();
    REQUIRE(session.create(kHook, settings));
    CHECK(std::string_view{session.path()}.find(scratch.path()) == 0);
    CHECK(session.view().string(session.header().dump_directory) == scratch.path());
  }
  SUBCASE("it does not: it is not created") {
    const std::string missing = std::string{scratch.path()} + "/oom_dumps";
    settings.dump_directory = missing.c_str();
    REQUIRE(session.create(kHook, settings));
    CHECK_FALSE(std::filesystem::exists(missing));
    CHECK(session.path()[0] == '/');
  }
  session.remove_file(kHook);
}

// --- Which sessions a later one removes: those beyond the budget, and what a kill or an exec left
// unfinished

namespace {

// Makes the kernel kill this process at its next system call with that number.
bool die_at(u32 system_call) {
  const sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(rules);
}

}  // namespace

TEST_CASE("dead sessions have a budget, live and young ones do not") {
  const Scratch scratch;
  {
    const auto first = session_in(scratch.path());
    first->remove_file(kHook);
  }
  std::vector<std::string> dead;
  for (unsigned number = 0; number < kMaxDeadSessions + 5; ++number) {
    Victim victim{scratch};
    for (const std::string& path : files_in(scratch.own())) {
      if (std::find(dead.begin(), dead.end(), path) == dead.end()) dead.push_back(path);
    }
    victim.child.kill();
    const timespec times[2] = {{1'000'000 + number, 0}, {1'000'000 + number, 0}};
    REQUIRE(utimensat(AT_FDCWD, dead.back().c_str(), times, 0) == 0);
  }
  const std::string young = scratch.own() + "/young.session", other = scratch.own() + "/notes.txt";
  std::ofstream{young} << "not yet a session";
  std::ofstream{other} << "no session";

  const auto alive = session_in(scratch.path());
  std::vector<std::string> left;
  for (const std::string& path : dead) {
    if (std::filesystem::exists(path)) left.push_back(path);
  }
  CHECK(left.size() == kMaxDeadSessions);
  CHECK(left.front() == dead.at(5));
  CHECK(std::filesystem::exists(young));
  CHECK(std::filesystem::exists(other));
  CHECK(std::filesystem::exists(alive->path()));
}

namespace {

// Whether `path` still exists after another session has started beside it.
bool survives_a_beginning(const Scratch& scratch, const std::string& path) {
  session_in(scratch.path())->remove_file(kHook);
  return std::filesystem::exists(path);
}

void make_old(const std::string& path) {
  const timespec long_ago[2] = {{1'000'000, 0}, {1'000'000, 0}};
  REQUIRE(utimensat(AT_FDCWD, path.c_str(), long_ago, 0) == 0);
}

}  // namespace

TEST_CASE("a session killed at its start is removed once it is too old to be starting") {
  struct Row {
    u32 killed_at;
    bool empty;
  };
  const Row rows[] = {
      {SYS_ftruncate, true},  // it has no length yet
      {SYS_madvise, false},   // no header
      {SYS_sysinfo, false},   // the owner is not recorded yet
  };
  for (const Row& row : rows) {
    CAPTURE(row.killed_at);
    const Scratch scratch;
    Child child{[&] {
      if (die_at(row.killed_at)) session_in(scratch.path());
    }};
    const int status = child.wait();
    REQUIRE(WIFSIGNALED(status));
    REQUIRE(WTERMSIG(status) == SIGSYS);
    const std::vector<std::string> files = files_in(scratch.own());
    REQUIRE(files.size() == 1);
    CHECK((std::filesystem::file_size(files[0]) == 0) == row.empty);
    CHECK(survives_a_beginning(scratch, files[0]));
    make_old(files[0]);
    CHECK_FALSE(survives_a_beginning(scratch, files[0]));
  }
}

TEST_CASE("a process stopped at its start keeps its file") {
  const Scratch scratch;
  session_in(scratch.path())->remove_file(kHook);
  const std::string path = scratch.own() + "/a-host-" + std::to_string(getpid()) + "-" +
                           std::to_string(system::start_ticks(getpid())) + "-00c0ffee.session";
  std::ofstream{path}.flush();
  make_old(path);
  CHECK(survives_a_beginning(scratch, path));
}

TEST_CASE("a session left by an exec is removed at once, unless it has failures") {
  for (const u64 failures : {u64{0}, u64{1}}) {
    const Scratch scratch;
    Signal ready;
    Child child{[&] {
      const auto session = session_in(scratch.path());
      session->header().failures_total.store(failures);
      session->mark(kHook, State::replaced, 0);
      ready.give();
      pause();
    }};
    ready.take();
    const std::string path = files_in(scratch.own()).at(0);
    child.kill();

    const auto next = session_in(scratch.path());
    CHECK(std::filesystem::exists(path) == (failures != 0));
  }
}
