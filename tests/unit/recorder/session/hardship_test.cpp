// Sessions without enough disk, address space, a directory, a descriptor, or their process.
#include <doctest/doctest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <algorithm>
#include <thread>

#include "common/session/directories.h"
#include "common/system/syscalls.h"
#include "recorder/session/alive.h"
#include "recorder/session/writer.h"
#include "tests/unit/recorder/session/fixtures.h"

using namespace oomrec;
using namespace oomrec::session;

namespace {

constexpr int kPassed = 33;

// Runs `body` in a child with separate limits and sessions, and returns its exit status.
template <class Body>
int status_of_child(Body body) {
  Child child{[&] { _exit(body()); }};
  const int status = child.wait();
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

// ThreadSanitizer does not see the recorder's system calls, and would take the mutex of the next
// session at this page for the one whose owner has ended. It sees those of libc.
void unmap_visibly(const void* page) {
  void* const mapped =
      mmap(const_cast<void*>(page), kPageBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(mapped == page);
  REQUIRE(munmap(mapped, kPageBytes) == 0);
}

u64 append_until_full(Session& session, u64 most = 10'000'000) {
  u32 index = 0;
  u64 appended = 0;
  while (appended < most && tests::append_node(session, index, 0, 7)) {
    ++appended;
  }
  return appended;
}

void set_limit(int resource, u64 bytes) {
  const rlimit limit{bytes, bytes};
  REQUIRE(setrlimit(static_cast<__rlimit_resource>(resource), &limit) == 0);
}

// Simulates a kernel before Linux 5.14: madvise does not support MADV_POPULATE_WRITE.
bool disable_populate() {
  constexpr u32 kPopulateWrite = 23;
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kPopulateWrite, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// Makes the kernel kill this process at its next system call with that number.
bool die_at(u32 system_call) {
  sock_filter rules[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, system_call, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{std::size(rules), rules};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

// The session of a child that signals when it is ready, then waits to be killed.
struct Victim {
  explicit Victim(const Scratch& scratch, Settings settings = {})
      : child([&] {
          const auto session = session_in(scratch.path(), settings);
          append_until_full(*session, 1000);
          ready.give();
          pause();
        }) {
    ready.take();
  }
  Signal ready;
  Child child;
};

Life life_in(const std::string& path) { return life_of(Recording{path}.view()); }

}  // namespace

TEST_CASE("a full disk loses entries but does not kill") {
  const Scratch scratch;
  const bool mounted = mount("tmpfs", scratch.path(), "tmpfs", 0, "size=1m") == 0;
  if (!mounted) {
    MESSAGE("skipped: no right to mount a small tmpfs");
    return;
  }
  const int status = status_of_child([&] {
    const auto session = session_in(scratch.path());
    if (std::string_view{session->path()}.find(scratch.path()) != 0) return 1;
    const u64 appended = append_until_full(*session);
    if (appended < 20'000 || appended > 65'536) return 2;
    if (session->view().count(TableId::nodes) != appended + 1) return 3;
    return kPassed;
  });
  CHECK(status == kPassed);
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
  const int status = status_of_child([&] {
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
  CHECK(status == kPassed);
}

TEST_CASE("such a kernel's full disk does not kill either") {
  const Scratch scratch;
  if (mount("tmpfs", scratch.path(), "tmpfs", 0, "size=1m") != 0) {
    MESSAGE("skipped: no right to mount a small tmpfs");
    return;
  }
  const int status = status_of_child([&] {
    if (!disable_populate()) return 1;
    const auto session = session_in(scratch.path());
    if (!session->arena.is_file()) return 2;
    const u64 appended = append_until_full(*session);
    return appended > 20'000 && appended < 65'536 ? kPassed : 3;
  });
  CHECK(status == kPassed);
  umount2(scratch.path(), MNT_DETACH);
}

TEST_CASE("RLIMIT_FSIZE makes the file shorter, and never SIGXFSZ") {
  const Scratch scratch;
  const int status = status_of_child([&] {
    set_limit(RLIMIT_FSIZE, (3 << 20) + 1234);
    const auto session = session_in(scratch.path());
    if (session->arena.file_bytes() != 3 << 20 || !session->arena.is_file()) return 1;
    const u64 appended = append_until_full(*session);
    if (appended < 60'000) return 2;
    return kPassed;
  });
  CHECK(status == kPassed);
}

TEST_CASE("without a file the session is private memory") {
  const Scratch scratch;
  const int status = status_of_child([&] {
    set_limit(RLIMIT_FSIZE, 4096);
    Settings settings;
    settings.mode = Mode::exact;
    const auto session = session_in(scratch.path(), settings);
    if (session->arena.is_file() || session->path()[0] != '\0') return 1;
    if (append_until_full(*session, 3'000'000) != 3'000'000) return 2;
    if (session->view().problem() != Problem::none) return 3;
    return kPassed;
  });
  CHECK(status == kPassed);
  CHECK(files_in(scratch.own()).empty());
}

TEST_CASE("exhausted address space loses entries") {
  if (kSanitized) return;  // its own address space exceeds RLIMIT_AS
  const Scratch scratch;
  const int status = status_of_child([&] {
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
  CHECK(status == kPassed);
}

TEST_CASE("a short recording has some address space ahead") {
  if (kSanitized) return;  // its own address space exceeds RLIMIT_AS
  const Scratch scratch;
  const int status = status_of_child([&] {
    const auto session = session_in(scratch.path());
    set_limit(RLIMIT_AS, 1 << 20);
    const u64 appended = append_until_full(*session);
    if (appended < 5'000 || appended > 100'000) return 1;
    return session->view().count(TableId::nodes) == appended + 1 ? kPassed : 2;
  });
  CHECK(status == kPassed);
}

TEST_CASE("no system call is made in a sandbox") {
  const Scratch scratch;
  const int status = status_of_child([&] {
    const auto session = session_in(scratch.path());
    system::g_filters = 1;
    const u64 appended = append_until_full(*session);
    if (appended == 0 || appended > 4096) return 1;  // the entries that were populated before
    if (session->add_string(kHook, "still there") == 0) return 2;
    return kPassed;
  });
  CHECK(status == kPassed);
}

TEST_CASE("no descriptor stays open, and 0 to 2 are untouched") {
  const Scratch scratch;
  const int status = status_of_child([&] {
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
  CHECK(status == kPassed);
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

TEST_CASE("a killed process is dead, and its entries are complete") {
  const Scratch scratch;
  Victim victim{scratch};
  const std::string path = files_in(scratch.own()).at(0);
  CHECK(life_in(path) == Life::alive);
  victim.child.kill();
  CHECK(life_in(path) == Life::dead);
  CHECK(Recording{path}.view().count(TableId::nodes) == 1001);
}

TEST_CASE("a dead process without the kernel's mark is dead in a shared pid namespace") {
  const Scratch scratch;
  Victim victim{scratch};
  const std::string path = files_in(scratch.own()).at(0);
  const auto change = [&](std::size_t offset, u32 value) {
    std::fstream file{path, std::ios::in | std::ios::out | std::ios::binary};
    file.seekp(static_cast<std::streamoff>(offset));
    file.write(reinterpret_cast<const char*>(&value), sizeof value);
  };
  const auto pid = static_cast<u32>(Recording{path}.view().header().pid);
  const u32 counted_in = Recording{path}.view().header().pid_namespace;
  CHECK(life_in(path) == Life::alive);
  victim.child.kill();
  change(offsetof(Header, alive_mutex), pid);
  CHECK(life_in(path) == Life::dead);
  change(offsetof(Header, pid_namespace), counted_in + 1);  // of another pid namespace
  CHECK(life_in(path) == Life::alive);
  change(offsetof(Header, pid_namespace), 0);
  CHECK(life_in(path) == Life::alive);
}

TEST_CASE("a zombie is dead") {
  const Scratch scratch;
  Victim victim{scratch};
  const std::string path = files_in(scratch.own()).at(0);
  Recording before{path};
  const int pid = before.view().header().pid;
  kill(pid, SIGKILL);
  siginfo_t info;
  REQUIRE(waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED | WNOWAIT) == 0);
  CHECK(life_in(path) == Life::dead);
}

TEST_CASE("exec ends a session") {
  const Scratch scratch;
  Signal ready;
  Child child{[&] {
    const auto session = session_in(scratch.path());
    session->mark(kHook, State::replaced, 0);
    ready.give();
    execl("/bin/sleep", "sleep", "60", nullptr);
  }};
  ready.take();
  const std::string path = files_in(scratch.own()).at(0);
  for (int tries = 0; tries < 500 && life_in(path) == Life::alive; ++tries) usleep(10'000);
  const Recording recording{path};
  CHECK(life_of(recording.view()) == Life::dead);
  CHECK(recording.view().header().state == static_cast<u32>(State::replaced));
  const u32 word = *reinterpret_cast<const u32*>(recording.view().header().alive_mutex);
  CHECK((word & 0x4000'0000) != 0);  // FUTEX_OWNER_DIED
}

TEST_CASE("the kernel marks a death without libpthread, too") {
  const Scratch scratch;
  Signal ready;
  Child child{[&] {
    const auto session = session_in(scratch.path());
    REQUIRE(lock_without_libpthread(session->header()));
    ready.give();
    pause();
  }};
  ready.take();
  const std::string path = files_in(scratch.own()).at(0);
  const auto word = [&] {
    const Recording recording{path};
    return *reinterpret_cast<const u32*>(recording.view().header().alive_mutex);
  };
  CHECK(word() == static_cast<u32>(child.pid()));
  CHECK(life_in(path) == Life::alive);
  child.kill();
  CHECK(word() == 0x4000'0000);  // FUTEX_OWNER_DIED
  CHECK(life_in(path) == Life::dead);
}

TEST_CASE("the end of the thread that held the mutex is not the end of the process") {
  const Scratch scratch;
  auto session = std::make_unique<Session>();
  Settings settings;
  settings.session_directory = scratch.path();
  std::thread{[&] { REQUIRE(session->create(kHook, settings)); }}.join();
  const auto owner_died = [&] {
    return (*reinterpret_cast<const u32*>(session->header().alive_mutex) & 0x4000'0000) != 0;
  };
  CHECK(owner_died());
  CHECK(life_in(session->path()) == Life::alive);  // by pid and start time
  session->keep_alive(kHook);
  CHECK_FALSE(owner_died());
  CHECK(life_in(session->path()) == Life::alive);
}

TEST_CASE("a session of another boot is dead") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  session->header().boot_id[3] ^= 1;
  CHECK(life_of(session->view()) == Life::dead);
}

TEST_CASE("a forked child releases its parent's session") {
  const Scratch scratch;
  const auto session = session_in(scratch.path());
  append_until_full(*session, 100);
  pthread_mutex_t other;
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_init(&other, &robust);

  const auto in_child = [&] {
    session->detach(kHook);
    if (session->active() || session->nodes.size() != 0) return 1;
    if (append_until_full(*session) != 0 || session->add_string(kHook, "no") != 0) return 2;
    // The thread's list of robust mutexes must not point into unmapped memory.
    for (int round = 0; round < 3; ++round) {
      if (pthread_mutex_lock(&other) != 0 || pthread_mutex_unlock(&other) != 0) return 3;
    }
    Settings settings;
    settings.session_directory = scratch.path();
    if (!session->create(kHook, settings) || session->header().pid != getpid()) return 4;
    if (append_until_full(*session, 50) != 50) return 5;
    if (files_in(scratch.own()).size() != 2) return 6;
    session->remove_file(kHook);
    return kPassed;
  };
  SUBCASE("by fork") { CHECK(status_of_child(in_child) == kPassed); }
  SUBCASE("by a raw clone") {
    const long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (pid == 0) _exit(in_child());
    int status = 0;
    REQUIRE(waitpid(static_cast<pid_t>(pid), &status, 0) == pid);
    CHECK(WEXITSTATUS(status) == kPassed);
  }
  CHECK(life_of(session->view()) == Life::alive);
  CHECK(session->view().count(TableId::nodes) == 101);
  CHECK(append_until_full(*session, 10) == 10);
}

TEST_CASE("a session that ends is unmapped, but for a page in another thread's list of mutexes") {
  const Scratch scratch;
  Session session;
  Settings settings;
  settings.session_directory = scratch.path();
  pthread_mutexattr_t robust;
  pthread_mutexattr_init(&robust);
  pthread_mutexattr_setrobust(&robust, PTHREAD_MUTEX_ROBUST);
  pthread_mutex_t other;
  pthread_mutex_init(&other, &robust);
  std::atomic<int> step{0};
  std::thread owner{[&] {
    REQUIRE(session.create(kHook, settings));
    step = 1;
    while (step != 2) std::this_thread::yield();
    // Its list leads to the session's mutex.
    for (int round = 0; round < 3; ++round) {
      REQUIRE(pthread_mutex_lock(&other) == 0);
      REQUIRE(pthread_mutex_unlock(&other) == 0);
    }
  }};
  const auto is_mapped = [](const void* page) {
    unsigned char resident = 0;
    return syscall(SYS_mincore, page, kPageBytes, &resident) == 0;
  };
  while (step != 1) std::this_thread::yield();
  append_until_full(session, 50'000);
  const Header* const first = &session.header();
  struct stat file {};
  const std::string path = session.path();
  session.close(kHook);
  CHECK_FALSE(session.active());
  CHECK(is_mapped(first));
  REQUIRE(stat(path.c_str(), &file) == 0);
  CHECK(file.st_blocks * 512 <= static_cast<long>(2 * kPageBytes));

  REQUIRE(session.create(kHook, settings));  // by this thread
  const Header* const second = &session.header();
  CHECK(second != first);
  CHECK(append_until_full(session, 50) == 50);
  session.close(kHook);
  CHECK_FALSE(is_mapped(second));
  CHECK(is_mapped(first));

  step = 2;
  owner.join();
  session.close(kHook);
  CHECK_FALSE(is_mapped(first));
  unmap_visibly(first);
}

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
